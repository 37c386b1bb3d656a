/* Opens kernel interfaces that many attacks begin with. With an argument `hold`
   it keeps what it got until its stdin ends, for the test to look at. */
#include "report.h"
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>

static char nothing[64];

static struct io_uring_params ring;
static union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
static struct bpf_insn program[] = {{.code = 0xb7}, {.code = 0x95}};
static struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof event, .config = PERF_COUNT_SW_DUMMY, .exclude_kernel = 1};

static long bpf_load(void) {
  union bpf_attr load = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insn_cnt = 2,
                         .insns = (uint64_t)program, .license = (uint64_t)"GPL"};
  return syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof load);
}

#define HOLD(name, expression)                                                 \
  do {                                                                         \
    errno = 0;                                                                 \
    long result = (long)(expression);                                          \
    printf("%s %s\n", name, result >= 0 ? "ok" : strerrorname_np(errno));      \
  } while (0)

int main(int argc, char **argv) {
  HOLD("io_uring_setup", syscall(SYS_io_uring_setup, 4, &ring));
  HOLD("io_uring_enter", syscall(SYS_io_uring_enter, -1, 0, 0, 0, 0, 0) == -1 && errno == EBADF ? 0 : -1);
  HOLD("io_uring_register", syscall(SYS_io_uring_register, -1, 0, 0, 0) == -1 && (errno == EBADF || errno == EINVAL) ? 0 : -1);
  HOLD("bpf_map", syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map));
  HOLD("bpf_load", bpf_load());
  HOLD("perf_event_open", syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
  HOLD("userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC));
  HOLD("userfaultfd_user", syscall(SYS_userfaultfd, O_CLOEXEC | 1));
  HOLD("fanotify_init", syscall(SYS_fanotify_init, 0x200 /* FID */, O_RDONLY));
  HOLD("add_key", syscall(SYS_add_key, "user", "wall-test", "secret", 6, -1 /* thread */));
  HOLD("request_key", syscall(SYS_request_key, "user", "wall-test", 0, 0));
  HOLD("keyctl", syscall(SYS_keyctl, 0 /* get id */, -3 /* session */, 1));
  HOLD("keyctl_join", syscall(SYS_keyctl, 1 /* join session */, 0));
  HOLD("kcmp", syscall(SYS_kcmp, getpid(), getpid(), 1, 0, 0));
  HOLD("move_pages", syscall(SYS_move_pages, 0, 0, 0, 0, 0, 0));
  HOLD("modify_ldt", syscall(SYS_modify_ldt, 0, map, 16));
  HOLD("memfd_secret", syscall(447, 0));
  HOLD("syslog_size", syscall(SYS_syslog, 10, 0, 0));
  HOLD("syslog_read", syscall(SYS_syslog, 3, program, 8));
  HOLD("name_to_handle_at", syscall(SYS_name_to_handle_at, AT_FDCWD, "/", nothing, nothing + 32, 0) == -1 && errno == EOVERFLOW ? 0 : -1);
  HOLD("personality_exec", syscall(SYS_personality, 0x0400000 /* READ_IMPLIES_EXEC */));
  HOLD("personality_old", syscall(SYS_personality, 0x0100000 /* MMAP_PAGE_ZERO */));
  fflush(stdout);
  char byte;
  if (argc > 1 && !strcmp(argv[1], "hold"))
    while (read(0, &byte, 1) > 0) {}
  return 0;
}
