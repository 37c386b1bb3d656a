set -e
cat > main.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *square(void *argument) { long n = (long)argument; return (void *)(n * n); }
int main(int argc, char **argv) {
  pthread_t threads[4]; long sum = 0;
  for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, square, (void *)i);
  for (int i = 0; i < 4; i++) { void *result; pthread_join(threads[i], &result); sum += (long)result; }
  printf("%ld %s\n", sum, argv[1]);
  return 11;
}
C
gcc -O2 -Wall -pthread -o main main.c
set +e
./main argument; echo "exit $?"
echo 'int main(void) { return x; }' | gcc -x c - 2>&1 | grep -o "'x' undeclared\|‘x’ undeclared" | tr -d "'‘’"
