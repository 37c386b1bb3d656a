/* System calls through the 32-bit gate and by x32 numbers, and numbers that do
   not exist. `ok` means that the call did its work. */
#include "report.h"
#include <sys/mman.h>

static long gate(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
  if (result < 0 && result > -4096) return errno = -result, -1;
  return result;
}

int main(void) {
  /* The 32-bit gate takes addresses below 4 GiB only. */
  char *low = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  strcpy(low, "made-by-int80");
  TRY("int80-getpid", gate(20, 0, 0, 0));
  TRY("int80-mkdir", gate(39, (long)low, 0777, 0));
  TRY("int80-socket", gate(359, 16 /* AF_NETLINK */, 3, 0));
  TRY("int80-unshare", gate(310, CLONE_NEWUSER, 0, 0));
  TRY("int80-ptrace", gate(26, 0, 0, 0));
  TRY("x32-getpid", syscall(0x40000000 + 39));
  TRY("x32-mkdir", syscall(0x40000000 + 83, "made-by-x32", 0777));
  TRY("x32-ptrace", syscall(0x40000000 + 521, 0, 0, 0, 0));
  TRY("unknown-500", syscall(500));
  TRY("unknown-999", syscall(999));
  TRY("unknown-9999", syscall(9999));
  TRY("unknown-big", syscall(0x7fffffff));
  TRY("unknown-wide", syscall(0x100000027UL));
  TRY("unknown-minus", syscall(-1L));
  TRY("old-uselib", syscall(134, 0));
  TRY("old-sysctl", syscall(156, 0));
  TRY("old-create_module", syscall(174, 0, 0));
  return 0;
}
