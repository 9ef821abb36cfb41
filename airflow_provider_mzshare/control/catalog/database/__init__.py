"""The catalog's database: how it is opened and upgraded, its tables as typed rows, transactions and locks."""
