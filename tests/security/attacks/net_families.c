/* Makes a socket of every family and type: prints "family.type result". */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
  int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, 10 /* SOCK_PACKET */};
  for (int family = 0; family < 50; family++)
    for (int i = 0; i < 5; i++) {
      int fd = socket(family, types[i], 0);
      if (fd < 0 && types[i] == SOCK_RAW) fd = socket(family, SOCK_RAW, 255);
      printf("%d.%d %s\n", family, types[i], fd >= 0 ? "ok" : strerrorname_np(errno));
      if (fd >= 0) close(fd);
      int pair[2];
      if (socketpair(family, types[i], 0, pair) == 0) {
        printf("pair%d.%d ok\n", family, types[i]);
        close(pair[0]), close(pair[1]);
      }
      /* The kernel looks at 32 bits of the family, a filter might at 64. */
      long wide = syscall(41, family | (1L << 32), types[i], 0);
      if (wide >= 0) printf("wide%d.%d ok\n", family, types[i]), close(wide);
    }
  return 0;
}
