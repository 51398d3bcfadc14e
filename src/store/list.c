#include "store/list.h"

#include <errno.h>

void store_page_free(struct store_page *page)
{
    if (!page)
        return;
    arena_done(&page->arena);
    free(page);
}
