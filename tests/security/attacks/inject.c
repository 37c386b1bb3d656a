/* Types into the terminal that it is on, as if its user had. */
#include "report.h"
#include <sys/ioctl.h>
#include <termios.h>

int main(void) {
  int own = open("/dev/tty", O_RDWR);
  printf("tty %s\n", own >= 0 ? "ok" : strerrorname_np(errno));
  int descriptors[] = {0, 1, 2, own};
  const char *names[] = {"stdin", "stdout", "stderr", "tty"};
  char name[64], c = 'X', select[2] = {3, 0};
  for (int i = 0; i < 4; i++) {
    snprintf(name, sizeof name, "push-%s", names[i]);
    TRY(name, ioctl(descriptors[i], TIOCSTI, &c));
    snprintf(name, sizeof name, "wide-%s", names[i]);
    TRY(name, syscall(SYS_ioctl, descriptors[i], TIOCSTI | (1UL << 32), &c));
    snprintf(name, sizeof name, "linux-%s", names[i]);
    TRY(name, ioctl(descriptors[i], TIOCLINUX, select));
    snprintf(name, sizeof name, "wide-linux-%s", names[i]);
    TRY(name, syscall(SYS_ioctl, descriptors[i], TIOCLINUX | (1UL << 32), select));
    snprintf(name, sizeof name, "console-%s", names[i]);
    TRY(name, ioctl(descriptors[i], TIOCCONS));
  }
  /* A session may take a terminal that belongs to nobody. */
  TRY("steal", (setsid(), ioctl(0, TIOCSCTTY, 1)));
  return 0;
}
