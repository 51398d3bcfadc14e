/* SPDX-License-Identifier: Apache-2.0 */
/* A key of the configuration tree in two places: every way in which they may differ. */
#include "testing.h"

#include <errno.h>

#include "manager/etcd/etcd_merge.h"

/* Both were "old" at revision 5, where nothing else is said. */
static const struct {
    const char *ours, *theirs;
    int64_t revision;
    bool is_new, is_unusable, is_lost; /* no base; what etcd has; another etcd */
    const char *asked;                 /* for which we asked since; NULL = nothing */
    enum etcd_action action;
    bool is_conflict;
    const char *what;
} cases[] = {
    { "old", "old", 5, .action = ETCD_LEAVE, .what = "nothing has changed" },
    { "new", "old", 5, .action = ETCD_PUSH, .what = "we have" },
    { "old", "new", 6, .action = ETCD_TAKE, .what = "they have" },
    { "new", "new", 6, .action = ETCD_RECORD, .what = "both have, to the same" },
    { "one", "two", 6, .action = ETCD_TAKE, .is_conflict = true, .what = "both have" },
    { NULL, "old", 5, .action = ETCD_PUSH, .what = "we have deleted it" },
    { "old", NULL, 0, .action = ETCD_TAKE, .what = "they have deleted it" },
    { NULL, NULL, 0, .action = ETCD_RECORD, .what = "both have deleted it" },
    { "new", NULL, 0, .action = ETCD_PUSH, .is_conflict = true,
      .what = "they have deleted what we changed" },
    { NULL, "new", 6, .action = ETCD_TAKE, .is_conflict = true,
      .what = "we have deleted what they changed" },
    { "old", "old", 7, .action = ETCD_RECORD, .what = "they wrote the same again" },
    /* never met */
    { "one", NULL, 0, .is_new = true, .action = ETCD_PUSH, .what = "only we have it" },
    { NULL, "one", 3, .is_new = true, .action = ETCD_TAKE, .what = "only they have it" },
    { "one", "two", 3, .is_new = true, .action = ETCD_TAKE, .is_conflict = true,
      .what = "both have it, differently" },
    { "one", "one", 3, .is_new = true, .action = ETCD_RECORD, .what = "both have the same" },
    { NULL, NULL, 0, .is_new = true, .action = ETCD_LEAVE, .what = "nobody has it" },
    /* our own change, whose answer we did not see */
    { "new", "new", 6, .asked = "new", .action = ETCD_RECORD, .what = "ours has come" },
    { "newer", "new", 6, .asked = "new", .action = ETCD_PUSH,
      .what = "ours has come, and we went on" },
    { "old", "new", 6, .asked = "new", .action = ETCD_PUSH,
      .what = "ours has come, and we went back" },
    { "newer", "two", 6, .asked = "new", .action = ETCD_TAKE, .is_conflict = true,
      .what = "ours has come, and they went on" },
    { "new", "old", 5, .asked = "new", .action = ETCD_PUSH, .what = "ours has not come" },
    { "new", NULL, 0, .asked = "", .action = ETCD_PUSH,
      .what = "our deletion has come, and we went on" },
    /* what cannot be a value of the tree */
    { "old", NULL, 6, .is_unusable = true, .action = ETCD_LEAVE, .what = "it cannot be used" },
    { "new", NULL, 6, .is_unusable = true, .action = ETCD_PUSH, .what = "we replace it" },
    { NULL, NULL, 6, .is_unusable = true, .is_new = true, .action = ETCD_LEAVE,
      .what = "it is new, and cannot be used" },
    /* emptied, or restored from a backup */
    { "old", NULL, 0, .is_lost = true, .action = ETCD_PUSH, .what = "what is gone comes back" },
    { "old", "older", 2, .is_lost = true, .action = ETCD_PUSH, .what = "what is older, too" },
    { NULL, "older", 2, .is_lost = true, .action = ETCD_PUSH,
      .what = "what we deleted goes again" },
    { NULL, "one", 2, .is_lost = true, .is_new = true, .action = ETCD_TAKE,
      .what = "what we never knew is taken" },
    { "one", "two", 2, .is_lost = true, .is_new = true, .action = ETCD_PUSH,
      .what = "ours counts, known or not" },
    { "old", "old", 2, .is_lost = true, .action = ETCD_RECORD, .what = "the same is the same" },
    { NULL, NULL, 2, .is_lost = true, .is_new = true, .is_unusable = true, .action = ETCD_LEAVE,
      .what = "what cannot be used is left" },
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        struct etcd_base base = etcd_base_agreed("old", 5);
        struct etcd_sides sides = { .ours = cases[i].ours,
                                    .theirs = cases[i].theirs,
                                    .mod_revision = cases[i].revision,
                                    .is_unusable = cases[i].is_unusable,
                                    .has_history = !cases[i].is_lost,
                                    .base = cases[i].is_new ? NULL : &base };
        struct etcd_verdict verdict;

        if (cases[i].asked)
            etcd_base_ask(&base, *cases[i].asked ? cases[i].asked : NULL);
        verdict = etcd_merge(&sides);
        if (verdict.action != cases[i].action || verdict.is_conflict != cases[i].is_conflict)
            fail_msg("%s: %d, %d", cases[i].what, verdict.action, verdict.is_conflict);
    }
}

/* Two sides that change at random, with answers that get lost: they agree in the end, on the last
 * change of the side that alone changed.
 */
static void test_they_meet(void **state)
{
    static const char *const values[] = { NULL, "a", "b", "c" };
    unsigned seed = 1;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        const char *ours = values[round % 4], *theirs = ours;
        int64_t revision = ours ? 1 : 0, last = 1;
        struct etcd_base base = etcd_base_agreed(ours, revision);

        for (int step = 0; step < 30; step++) {
            struct etcd_sides sides = { ours, theirs, revision, false, true, &base };
            bool is_quiet = step >= 20;

            seed = seed * 1103515245 + 12345;
            if (!is_quiet && (seed >> 16) % 3 == 0)
                sides.ours = ours = values[(seed >> 20) % 4];
            if (!is_quiet && (seed >> 24) % 5 == 0) {
                sides.theirs = theirs = values[(seed >> 27) % 4];
                sides.mod_revision = revision = theirs ? ++last : (last++, 0);
            }
            switch (etcd_merge(&sides).action) {
            case ETCD_LEAVE:
                break;
            case ETCD_RECORD:
                base = etcd_base_agreed(ours, revision);
                break;
            case ETCD_TAKE:
                ours = theirs;
                base = etcd_base_agreed(ours, revision);
                break;
            case ETCD_PUSH: /* noted; made, or lost on the way */
                etcd_base_ask(&base, ours);
                if (is_quiet || (seed >> 18) % 2) {
                    theirs = ours;
                    revision = theirs ? ++last : (last++, 0);
                }
                break;
            }
        }
        assert_true(ours == theirs || (ours && theirs && strcmp(ours, theirs) == 0));
    }
}

static void test_bases_are_texts(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, again = STRBUF_INIT;
    struct etcd_base base = etcd_base_agreed("x", 12), read;

    (void)state;
    etcd_base_write(&text, &base);
    assert_int_equal(etcd_base_parse(text.data, &read), 0);
    assert_memory_equal(&base, &read, sizeof(base));
    for (char i = 'a'; i < 'a' + 2 * ETCD_ASKED_MAX; i++)
        etcd_base_ask(&base, (char[]){ i, '\0' });
    etcd_base_ask(&base, NULL);
    strbuf_clear(&text);
    etcd_base_write(&text, &base);
    assert_int_equal(etcd_base_parse(text.data, &read), 0);
    etcd_base_write(&again, &read);
    assert_string_equal(text.data, again.data);
    assert_string_equal(read.asked[ETCD_ASKED_MAX - 1], "-"); /* the oldest were dropped */
}

static void test_other_texts(void **state)
{
    static const char *const texts[] = { "",
                                         "5",
                                         "x -",
                                         "-5 -",
                                         "5 x",
                                         "5  -",
                                         "5 - ",
                                         "5 -x",
                                         "99999999999999999999 -",
                                         "5 - - - - - - - - - -" };
    struct etcd_base base;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        assert_int_equal(etcd_base_parse(texts[i], &base), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_they_meet),
        cmocka_unit_test(test_bases_are_texts),
        cmocka_unit_test(test_other_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
