"""Fills a topic: history at once, then a steady stream. It knows nothing of who reads it.

Orders are keyed by customer: all orders of one are in one partition, in their order.
"""

from __future__ import annotations

import json
import threading

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

CUSTOMERS = 997


class Writer(threading.Thread):
    """Writes records with growing ids until told to stop; ``sent`` says how many are in the topic."""

    def __init__(self, bootstrap: str, topic: str, *, partitions: int, per_second: int) -> None:
        super().__init__(daemon=True)
        self._topic, self._partitions, self._per_second = topic, partitions, per_second
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "log_level": 0})
        self._stopped = threading.Event()
        self.sent = 0

    def send(self, count: int) -> None:
        for number in range(self.sent, self.sent + count):
            customer = number % CUSTOMERS
            value = {"id": number, "customer": f"c{customer}", "amount": (number % 10_000) / 100}
            partition = customer % self._partitions
            self._producer.produce(self._topic, json.dumps(value), key=f"c{customer}", partition=partition)
            if number % 10_000 == 0:
                self._producer.flush()
        self._producer.flush()
        self.sent += count

    def last_orders(self) -> range:
        """The id of the last order of each customer."""
        return range(max(0, self.sent - CUSTOMERS), self.sent)

    def run(self) -> None:
        while not self._stopped.wait(0.1):
            self.send(self._per_second // 10)

    def stop(self) -> None:
        self._stopped.set()
        self.join()
