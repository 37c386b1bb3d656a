/* Shared by attacks that try many things: each in a child of its own, so that
   one that is killed, or hangs, does not hide the others. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Prints `name ok`, `name ERRNO` or `name killed-by-N`. */
#define TRY(name, expression)                                                  \
  do {                                                                         \
    fflush(stdout);                                                            \
    pid_t child = fork();                                                      \
    if (child == 0) {                                                          \
      alarm(5);                                                                \
      errno = 0;                                                               \
      long result = (long)(expression);                                        \
      printf("%s %s\n", name, result >= 0 ? "ok" : strerrorname_np(errno));    \
      fflush(stdout);                                                          \
      _exit(0);                                                                \
    }                                                                          \
    int status;                                                                \
    waitpid(child, &status, 0);                                                \
    if (WIFSIGNALED(status)) printf("%s killed-by-%d\n", name, WTERMSIG(status)); \
  } while (0)

/* Ends an attack that must not run outside a PID namespace. */
#define INSIDE_ONLY()                                                          \
  if (getpid() > 100) {                                                        \
    fprintf(stderr, "this is no sandbox\n");                                   \
    return 99;                                                                 \
  }
