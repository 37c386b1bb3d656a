import collections, csv, dataclasses, datetime, decimal, enum, fractions, io, itertools, json, math, pickle, random, statistics, xml.etree.ElementTree as xml


@dataclasses.dataclass(order=True, frozen=True)
class Item:
    name: str
    price: decimal.Decimal = decimal.Decimal("0.10")
    tags: tuple = dataclasses.field(default=(), compare=False)


class Colour(enum.Flag):
    RED = enum.auto()
    BLUE = enum.auto()


print(sorted([Item("b"), Item("a", decimal.Decimal("2.5"))]), Colour.RED | Colour.BLUE)
decimal.getcontext().prec = 50
print(decimal.Decimal(2).sqrt(), fractions.Fraction(1, 3) + fractions.Fraction(1, 6), sum([decimal.Decimal("0.1")] * 10))
buffer = io.StringIO()
writer = csv.DictWriter(buffer, ["a", "b"])
writer.writeheader()
writer.writerow({"a": 'quo"ted', "b": "line\nbreak"})
print(repr(buffer.getvalue()), list(csv.DictReader(io.StringIO(buffer.getvalue()))))
print(json.dumps({"z": [1, 2.5, None, True, "é"], "a": {}}, sort_keys=True), json.loads("[1e5]"))
print(pickle.loads(pickle.dumps(Item("x"))), collections.Counter("mississippi").most_common(2))
print(datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc).isoformat(), datetime.date(2024, 1, 1).isocalendar())
print(xml.fromstring("<a><b c='1'>t</b></a>").find("b").attrib, statistics.stdev([1, 2, 4]), math.comb(50, 25))
print(random.Random(7).sample(range(100), 5), list(itertools.accumulate(range(6))), f"{math.pi:>12.6f}|{255:#x}")
