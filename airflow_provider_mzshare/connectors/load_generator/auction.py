"""The auction house: organizations, their users and accounts, auctions and bids, each with a key ``id``.

An output's records are births of new rows, one in so many, and updates of rows born before; each carries its whole row.
What a row refers to is drawn when it is born, from what was born up to the same offset of the partition referred to. So
it does not matter which record of a row one looks at, and no row refers to one that is not there yet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.connectors.load_generator.draws import Columns, Ints, below, choices, moments
from airflow_provider_mzshare.connectors.load_generator.plan import GeneratorPlan

ORGANIZATIONS_EVERY = 8
USERS_EVERY = 4
ACCOUNTS_EVERY = 4
AUCTIONS_EVERY = 2
"""One record in so many is a new row's; the others are updates. Every bid is new."""

LONGEST_MS = 600_000
"""How long an auction may still go on at most."""

_FIRST = ("Ada", "Bo", "Chidi", "Dalia", "Emre", "Fatou", "Gita", "Hugo", "Ines", "Jun", "Kofi", "Lena", "Milo", "Nour")
_LAST = ("Abara", "Berg", "Costa", "Dube", "Evans", "Fischer", "Garcia", "Haddad", "Ito", "Jensen", "Kaur", "Lopez")
_KIND = ("Amber", "Blue", "Copper", "Daring", "Eager", "Fair", "Golden", "Honest", "Ivory", "Jolly", "Keen", "Lucid")
_TRADE = ("Antiques", "Books", "Cycles", "Designs", "Estates", "Farms", "Galleries", "Holdings", "Imports", "Jewels")
_ITEM = ("Best Pizza in Town", "City Bar Crawl", "Custom Art", "Gift Basket", "Signed Memorabilia", "Opera Tickets")


@dataclass(frozen=True)
class Entity:
    """One output of the auction house; its partition is its place among them."""

    name: str
    columns: tuple[tuple[str, str], ...]
    make: Callable[[GeneratorPlan, int, Ints, Ints], Columns]


def _ids(plan: GeneratorPlan, what: str, offsets: Ints, every: int) -> Ints:
    """The id of the row, from 1 on: at every ``every``-th offset a new row, otherwise any earlier row."""
    born = offsets // every
    drawn = below(plan.seed, f"{what}.id", offsets, born + 1)
    return np.where(offsets % every == 0, born, drawn) + 1


def _referred(plan: GeneratorPlan, what: str, ids: Ints, every: int, referred_every: int) -> Ints:
    """A row that was there when the row with this id was born."""
    birth = (ids - 1) * every
    return below(plan.seed, what, ids, birth // referred_every + 1) + 1


def _two(plan: GeneratorPlan, what: str, offsets: Ints, first: tuple[str, ...], last: tuple[str, ...]) -> pa.Array:
    drawn: tuple[pa.Array, pa.Array] = (
        choices(plan.seed, f"{what}.first", offsets, first),
        choices(plan.seed, f"{what}.last", offsets, last),
    )
    return pc.binary_join_element_wise(*drawn, " ")


def _organizations(plan: GeneratorPlan, partition: int, offsets: Ints, times: Ints) -> Columns:
    """An update changes the name."""
    ids = _ids(plan, "organizations", offsets, ORGANIZATIONS_EVERY)
    return {"id": pa.array(ids), "name": _two(plan, "organizations.name", offsets, _KIND, _TRADE)}


def _users(plan: GeneratorPlan, partition: int, offsets: Ints, times: Ints) -> Columns:
    """An update changes the name."""
    ids = _ids(plan, "users", offsets, USERS_EVERY)
    org = _referred(plan, "users.org_id", ids, USERS_EVERY, ORGANIZATIONS_EVERY)
    name = _two(plan, "users.name", offsets, _FIRST, _LAST)
    return {"id": pa.array(ids), "org_id": pa.array(org), "name": name}


def _accounts(plan: GeneratorPlan, partition: int, offsets: Ints, times: Ints) -> Columns:
    """An update changes the balance."""
    ids = _ids(plan, "accounts", offsets, ACCOUNTS_EVERY)
    org = _referred(plan, "accounts.org_id", ids, ACCOUNTS_EVERY, ORGANIZATIONS_EVERY)
    balance = below(plan.seed, "accounts.balance", offsets, 20_000) - 10_000
    return {"id": pa.array(ids), "org_id": pa.array(org), "balance": pa.array(balance)}


def _auctions(plan: GeneratorPlan, partition: int, offsets: Ints, times: Ints) -> Columns:
    """An update moves the end."""
    ids = _ids(plan, "auctions", offsets, AUCTIONS_EVERY)
    seller = _referred(plan, "auctions.seller", ids, AUCTIONS_EVERY, USERS_EVERY)
    item = choices(plan.seed, "auctions.item", ids, _ITEM)
    end = moments(times + below(plan.seed, "auctions.end_time", offsets, LONGEST_MS))
    return {"id": pa.array(ids), "seller": pa.array(seller), "item": item, "end_time": end}


def _bids(plan: GeneratorPlan, partition: int, offsets: Ints, times: Ints) -> Columns:
    ids = offsets + 1
    buyer = _referred(plan, "bids.buyer", ids, 1, USERS_EVERY)
    auction = _referred(plan, "bids.auction_id", ids, 1, AUCTIONS_EVERY)
    amount = below(plan.seed, "bids.amount", offsets, 10_000) + 1
    whole = {"id": ids, "buyer": buyer, "auction_id": auction, "amount": amount}
    return {**{name: pa.array(numbers) for name, numbers in whole.items()}, "bid_time": moments(times)}


_ID = ("id", "bigint")
OUTPUTS = (
    Entity("organizations", (_ID, ("name", "text")), _organizations),
    Entity("users", (_ID, ("org_id", "bigint"), ("name", "text")), _users),
    Entity("accounts", (_ID, ("org_id", "bigint"), ("balance", "bigint")), _accounts),
    Entity("auctions", (_ID, ("seller", "bigint"), ("item", "text"), ("end_time", "timestamptz")), _auctions),
    Entity(
        "bids",
        (_ID, ("buyer", "bigint"), ("auction_id", "bigint"), ("amount", "integer"), ("bid_time", "timestamptz")),
        _bids,
    ),
)
"""In order: an output comes after the outputs that it refers to."""
