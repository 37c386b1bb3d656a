/* Changes what is mounted where. Only within a namespace. */
#include "report.h"
#include <sys/mount.h>

int main(void) {
  INSIDE_ONLY();
  mkdir("/tmp/at", 0777);
  mkdir("/tmp/at/old", 0777);
  char *at = "/tmp/at";
  TRY("tmpfs", mount("none", at, "tmpfs", 0, 0));
  TRY("proc", mount("none", at, "proc", 0, 0));
  TRY("sysfs", mount("none", at, "sysfs", 0, 0));
  TRY("devpts", mount("none", at, "devpts", 0, 0));
  TRY("cgroup2", mount("none", at, "cgroup2", 0, 0));
  TRY("overlay", mount("none", at, "overlay", 0, "lowerdir=/usr:/etc"));
  TRY("bind", mount("/etc", at, 0, MS_BIND, 0));
  TRY("remount-root", mount(0, "/", 0, MS_REMOUNT | MS_BIND, 0));
  TRY("remount-usr", mount(0, "/usr", 0, MS_REMOUNT | MS_BIND, 0));
  TRY("propagation", mount(0, "/", 0, MS_SHARED | MS_REC, 0));
  TRY("move", mount("/proc", at, 0, MS_MOVE, 0));
  TRY("umount-proc", umount2("/proc", MNT_DETACH));
  TRY("umount-etc", umount2("/etc", MNT_DETACH));
  TRY("umount-root", umount2("/", MNT_DETACH));
  TRY("pivot_root", syscall(SYS_pivot_root, at, "/tmp/at/old"));
  TRY("chroot", chroot(at));
  TRY("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
  TRY("fspick", syscall(433, AT_FDCWD, "/", 0));
  TRY("fsconfig", syscall(431, -1, 0, 0, 0, 0) == -1 && errno == EBADF ? 0 : -1);
  TRY("fsmount", syscall(432, -1, 0, 0) == -1 && errno == EBADF ? 0 : -1);
  TRY("open_tree", syscall(428, AT_FDCWD, "/usr", 1 /* clone */));
  TRY("move_mount", syscall(429, -1, "", -1, "", 0) == -1 && errno == EBADF ? 0 : -1);
  uint64_t attributes[4] = {0};
  TRY("mount_setattr", syscall(442, AT_FDCWD, "/", 0, attributes, sizeof attributes));
  return 0;
}
