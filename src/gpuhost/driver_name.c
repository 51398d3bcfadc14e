/* driver_name.c - only to link with: a program that is needs the driver's libcuda.so.1 */
__attribute__((visibility("default"))) int cuInit(unsigned int flags);

int cuInit(unsigned int flags)
{
    return (int)flags;
}
