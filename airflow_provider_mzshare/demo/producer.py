"""Fills a topic: history at once, then a steady stream. It knows nothing of who reads it."""

from __future__ import annotations

import json
import threading

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic


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
            value = {"id": number, "customer": f"c{number % 997}", "amount": (number % 10_000) / 100}
            self._producer.produce(self._topic, json.dumps(value), key=str(number), partition=number % self._partitions)
            if number % 10_000 == 0:
                self._producer.flush()
        self._producer.flush()
        self.sent += count

    def run(self) -> None:
        while not self._stopped.wait(0.1):
            self.send(self._per_second // 10)

    def stop(self) -> None:
        self._stopped.set()
        self.join()
