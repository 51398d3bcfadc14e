/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-storage - keeps folders, and serves their files */
#include "storage/storage.h"

int main(int argc, char **argv)
{
    static struct storage storage;
    static struct settings settings;

    return front_main(&storage_type, &storage, &settings, argc, argv);
}
