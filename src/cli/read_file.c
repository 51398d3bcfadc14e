/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the command line names, of which "-" is standard input. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "cli/cli.h"

int cli_read_file(const char *path, size_t limit, struct strbuf *out, struct aq_error *err)
{
    return strcmp(path, "-") == 0 ? fs_read_fd(STDIN_FILENO, "standard input", limit, out, err)
                                  : fs_read(AT_FDCWD, path, limit, out, err);
}
