/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_stub.c - only to link with: makes a program depend on the driver's libcuda.so.1 */
__attribute__((visibility("default"))) int cuInit(unsigned int flags);

int cuInit(unsigned int flags)
{
    return (int)flags;
}
