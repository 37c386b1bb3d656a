/* Makes and enters namespaces, every way there is; in children only. */
#include "report.h"
#include <linux/sched.h>

static long clone_with(uint64_t flags) {
  long child = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  return child;
}

static long clone3_with(uint64_t flags) {
  struct clone_args arguments = {.flags = flags, .exit_signal = SIGCHLD};
  long child = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (child == 0) _exit(0);
  return child;
}

static long enter(const char *path) {
  int namespace = open(path, O_RDONLY);
  return namespace < 0 ? -1 : syscall(SYS_setns, namespace, 0);
}

int main(void) {
  struct { const char *name; uint64_t flag; } kinds[] = {
      {"user", CLONE_NEWUSER}, {"mount", CLONE_NEWNS}, {"pid", CLONE_NEWPID},
      {"net", CLONE_NEWNET},   {"ipc", CLONE_NEWIPC},  {"uts", CLONE_NEWUTS},
      {"cgroup", CLONE_NEWCGROUP},
      {"user+mount", CLONE_NEWUSER | CLONE_NEWNS}, {"user+net", CLONE_NEWUSER | CLONE_NEWNET}};
  char name[64];
  for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    snprintf(name, sizeof name, "unshare-%s", kinds[i].name);
    TRY(name, syscall(SYS_unshare, kinds[i].flag));
    snprintf(name, sizeof name, "unshare-wide-%s", kinds[i].name);
    TRY(name, syscall(SYS_unshare, kinds[i].flag | (1UL << 40)));
    snprintf(name, sizeof name, "clone-%s", kinds[i].name);
    TRY(name, clone_with(kinds[i].flag));
    snprintf(name, sizeof name, "clone-wide-%s", kinds[i].name);
    TRY(name, clone_with(kinds[i].flag | (1UL << 40)));
    snprintf(name, sizeof name, "clone3-%s", kinds[i].name);
    TRY(name, clone3_with(kinds[i].flag));
  }
  TRY("unshare-time", syscall(SYS_unshare, 0x80 /* CLONE_NEWTIME */));
  TRY("clone3-time", clone3_with(0x80));
  const char *entries[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
  for (unsigned i = 0; i < 7; i++) {
    char path[64];
    snprintf(path, sizeof path, "/proc/1/ns/%s", entries[i]);
    snprintf(name, sizeof name, "setns-init-%s", entries[i]);
    TRY(name, enter(path));
    snprintf(path, sizeof path, "/proc/self/ns/%s", entries[i]);
    snprintf(name, sizeof name, "setns-self-%s", entries[i]);
    TRY(name, enter(path));
  }
  int init = syscall(SYS_pidfd_open, 1, 0);
  TRY("setns-pidfd", syscall(SYS_setns, init, CLONE_NEWNS));
  return 0;
}
