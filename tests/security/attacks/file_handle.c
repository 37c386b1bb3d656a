/* Opens a file by its handle, past every mount and directory ("shocker").
   `print PATH` prints the handle; `open HANDLE MOUNT...` reads through it. */
#include "report.h"

union { struct file_handle handle; char space[sizeof(struct file_handle) + MAX_HANDLE_SZ]; } u;

int main(int argc, char **argv) {
  int mount_id;
  if (!strcmp(argv[1], "print")) {
    u.handle.handle_bytes = MAX_HANDLE_SZ;
    if (name_to_handle_at(AT_FDCWD, argv[2], &u.handle, &mount_id, 0)) return perror("handle"), 1;
    printf("%d-", u.handle.handle_type);
    for (unsigned i = 0; i < u.handle.handle_bytes; i++) printf("%02x", u.handle.f_handle[i]);
    return 0;
  }
  char *hex = strchr(argv[2], '-') + 1;
  u.handle.handle_type = atoi(argv[2]);
  u.handle.handle_bytes = strlen(hex) / 2;
  for (unsigned i = 0; i < u.handle.handle_bytes; i++) sscanf(hex + 2 * i, "%2hhx", &u.handle.f_handle[i]);
  for (int i = 3; i < argc; i++) {
    char text[4096];
    int mount = open(argv[i], O_RDONLY);
    int file = open_by_handle_at(mount, &u.handle, O_RDONLY);
    if (file < 0) printf("%s %s\n", argv[i], strerrorname_np(errno));
    long length = read(file, text, sizeof text);
    if (length > 0) printf("READ %.*s\n", (int)length, text);
  }
  return 0;
}
