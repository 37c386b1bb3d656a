import functools, gc, sys, weakref

sys.set_int_max_str_digits(0)
sys.setrecursionlimit(5000)


@functools.lru_cache(None)
def ways(amount, coins=(1, 2, 5, 10, 20, 50)):
    return 1 if amount == 0 else 0 if amount < 0 or not coins else ways(amount - coins[-1], coins) + ways(amount, coins[:-1])


def deep(level):
    return deep(level + 1)


print(ways(400), len(str(3**10000)), pow(7, 10**6, 10**9 + 7))
try:
    deep(0)
except RecursionError as error:
    print(error)
primes = [n for n in range(2, 5000) if all(n % d for d in range(2, int(n**0.5) + 1))]
print(len(primes), primes[-1])


class Node:
    pass


node = Node()
node.itself, reference = node, weakref.ref(node)
del node
gc.collect()
print(reference() is None)
