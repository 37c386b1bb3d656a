/* Calls that only an administrator may make, with arguments that do nothing:
   what matters is whether the kernel gets so far as to look at them.
   `inside` adds those that would do something. */
#include "report.h"
#include <grp.h>
#include <linux/capability.h>
#include <linux/reboot.h>
#include <sys/prctl.h>
#include <sys/quota.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <time.h>
#include <sys/timex.h>

/* `errno` says that the permission check, and so the filter, is behind us. */
static long past(long result) {
  return result >= 0 || (errno != EPERM && errno != EACCES && errno != ENOSYS) ? 0 : -1;
}

static long capable(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2] = {{~0u, ~0u, 0}, {0x1ff, 0x1ff, 0}};
  return syscall(SYS_capset, &header, data);
}

static long bounding(void) {
  for (int capability = 0; capability < 41; capability++)
    if (prctl(PR_CAPBSET_READ, capability) == 1) return 0;
  errno = EPERM;
  return -1;
}

static long real_time(void) {
  struct sched_param parameter = {1};
  return sched_setscheduler(0, SCHED_FIFO, &parameter);
}

static long raise_limit(int which) {
  struct rlimit limit;
  getrlimit(which, &limit);
  limit.rlim_cur = limit.rlim_max = limit.rlim_max == RLIM_INFINITY ? RLIM_INFINITY : limit.rlim_max + 1;
  return setrlimit(which, &limit);
}

static long device(const char *name, int kind, int major, int minor) {
  if (mknod(name, kind | 0666, makedev(major, minor))) return -1;
  int opened = open(name, O_RDONLY);
  unlink(name);
  return opened;
}

int main(int argc, char **argv) {
  int inside = argc > 1 && !strcmp(argv[1], "inside");
  struct timeval bad_time = {0, -1};
  struct timespec bad_spec = {0, -1};
  struct timex change = {.modes = ADJ_TICK, .tick = 1};
  TRY("reboot", past(syscall(SYS_reboot, 1, 2, 3, 0)));
  TRY("kexec_load", past(syscall(SYS_kexec_load, 0, 0, 0, ~0UL)));
  TRY("kexec_file_load", past(syscall(SYS_kexec_file_load, -1, -1, 0, 0, ~0UL)));
  TRY("init_module", past(syscall(SYS_init_module, 0, 0, "")));
  TRY("finit_module", past(syscall(SYS_finit_module, -1, "", 0)));
  TRY("delete_module", past(syscall(SYS_delete_module, "no_such_module", O_NONBLOCK)));
  TRY("swapon", past(syscall(SYS_swapon, "/no/such/file", 0)));
  TRY("swapoff", past(syscall(SYS_swapoff, "/no/such/file")));
  TRY("settimeofday", past(syscall(SYS_settimeofday, &bad_time, 0)));
  TRY("clock_settime", past(syscall(SYS_clock_settime, CLOCK_REALTIME, &bad_spec)));
  TRY("adjtimex", past(syscall(SYS_adjtimex, &change)));
  TRY("clock_adjtime", past(syscall(SYS_clock_adjtime, CLOCK_REALTIME, &change)));
  TRY("sethostname", past(syscall(SYS_sethostname, 0, -1)));
  TRY("setdomainname", past(syscall(SYS_setdomainname, 0, -1)));
  TRY("acct", past(syscall(SYS_acct, "/no/such/file")));
  TRY("quotactl", past(syscall(SYS_quotactl, QCMD(Q_GETQUOTA, USRQUOTA), "/no/such", 0, 0)));
  TRY("iopl", syscall(SYS_iopl, 3));
  TRY("ioperm", syscall(SYS_ioperm, 0x80, 1, 1));
  TRY("setuid", setuid(0));
  TRY("seteuid", seteuid(0));
  TRY("setgid", setgid(0));
  TRY("setfsuid", (setfsuid(0), setfsuid(-1) == 0 ? 0 : (errno = EPERM, -1)));
  gid_t root_group = 0;
  TRY("setgroups", setgroups(1, &root_group));
  TRY("capset", capable());
  TRY("bounding", bounding());
  TRY("ambient", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21, 0, 0));
  TRY("securebits", prctl(PR_SET_SECUREBITS, 0x2f));
  TRY("new_privileges", prctl(PR_GET_NO_NEW_PRIVS) == 0 ? 0 : (errno = EPERM, -1));
  TRY("real_time", real_time());
  TRY("nice", setpriority(PRIO_PROCESS, 0, -20));
  TRY("ioprio", syscall(SYS_ioprio_set, 1, 0, 1 << 13));
  TRY("raise_files", raise_limit(RLIMIT_NOFILE));
  TRY("raise_core", raise_limit(RLIMIT_CORE));
  TRY("raise_processes", raise_limit(RLIMIT_NPROC));
  TRY("char_device", device("device-c", S_IFCHR, 1, 5));
  TRY("block_device", device("device-b", S_IFBLK, 7, 0));
  TRY("whiteout", mknod("device-w", S_IFCHR, 0));
  unlink("device-w");
  if (inside) {
    TRY("vhangup", syscall(SYS_vhangup));
    TRY("reboot-restart", syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_RESTART, 0));
    TRY("sethostname-really", sethostname("taken", 5));
    TRY("syslog-clear", syscall(SYS_syslog, 5, 0, 0));
  }
  return 0;
}
