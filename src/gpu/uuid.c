/* SPDX-License-Identifier: Apache-2.0 */
/* uuid.c - UUIDs of devices, as text and as bytes */
#include "gpu/uuid.h"

#include <stdio.h>
#include <string.h>

static int uuid_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool gpu_uuid_read(const char *text, uint8_t ret[16])
{
    unsigned int count = 0;

    if (strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0)
        text += 4;
    for (; *text && count < 32; text++) {
        int value = uuid_digit(*text);

        if (*text == '-')
            continue;
        if (value < 0)
            return false;
        ret[count / 2] = (uint8_t)(count % 2 ? ret[count / 2] << 4 | value : value);
        count++;
    }
    return count == 32 && !*text;
}

char *gpu_uuid_write(const uint8_t u[16], char ret[GPU_UUID_TEXT_MAX])
{
    (void)snprintf(ret, GPU_UUID_TEXT_MAX,
                   "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
                   u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
                   u[14], u[15]);
    return ret;
}
