"""How often somebody may ask."""

from collections import OrderedDict


class Throttle:
    """Token buckets by key: `burst` at once, then `rate` a second; the oldest key is forgotten."""

    def __init__(self, rate: float, burst: float, most: int = 5000) -> None:
        self.rate, self.burst, self.most = rate, burst, most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # left, when

    def admit(self, name: str, timestamp: float) -> bool:
        left, then = self._buckets.pop(name, (self.burst, timestamp))
        left = min(self.burst, left + (timestamp - then) * self.rate)
        self._buckets[name] = (left - 1 if left >= 1 else left), timestamp
        while len(self._buckets) > self.most:
            self._buckets.popitem(last=False)
        return left >= 1
