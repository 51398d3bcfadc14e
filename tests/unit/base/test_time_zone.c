/* SPDX-License-Identifier: Apache-2.0 */
/* Time zones of tzdata, beyond the transitions in their files too, and damaged files. */
#include "testing.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/time_zone.h"

static int64_t at(const char *text)
{
    int64_t usec;

    assert_int_equal(clock_parse_date(text, &usec), 0);
    return usec / USEC_PER_SEC;
}

static void offsets_are_those_of_tzdata(void **state)
{
    static const struct {
        const char *zone, *at;
        int32_t offset;
    } cases[] = {
        { "UTC", "2026-11-30 00:00", 0 },
        { "Europe/Berlin", "2026-01-15 12:00", 3600 },
        { "Europe/Berlin", "2026-03-29 00:59:59", 3600 },
        { "Europe/Berlin", "2026-03-29 01:00", 7200 },
        { "Europe/Berlin", "2026-10-25 00:59:59", 7200 },
        { "Europe/Berlin", "2026-10-25 01:00", 3600 },
        { "Europe/Berlin", "2126-07-01 00:00", 7200 }, /* by the rule in the footer */
        { "Europe/Berlin", "2126-12-31 23:59", 3600 },
        { "America/New_York", "2126-07-04 00:00", -4 * 3600 },
        { "Australia/Lord_Howe", "2026-01-01 00:00", 11 * 3600 },
        { "Australia/Lord_Howe", "2126-07-01 00:00", 10 * 3600 + 1800 },
        { "Asia/Kolkata", "2026-11-30 00:00", 19800 },
        { "Pacific/Apia", "2011-12-30 09:59:59", -10 * 3600 },
        { "Pacific/Apia", "2011-12-30 10:00", 14 * 3600 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(time_zone_freep) struct time_zone *zone = NULL;
        struct aq_error err = { 0 };
        struct time_zone_span span;

        if (time_zone_open(cases[i].zone, &zone, &err) < 0)
            fail_msg("%s", err.text);
        span = time_zone_find(zone, at(cases[i].at));
        if (span.offset != cases[i].offset || span.from > at(cases[i].at)
            || span.until <= at(cases[i].at))
            fail_msg("%s at %s has %d", cases[i].zone, cases[i].at, span.offset);
    }
}

static void names_that_are_none_are_refused(void **state)
{
    static const char *const names[] = { "",       "/etc/passwd", "../../etc/passwd", "Europe/",
                                         "Eu//ro", "a.b",         "Europe/Berlin ",   "1" };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        struct time_zone *zone;
        struct aq_error err = { 0 };

        assert_int_equal(time_zone_open(names[i], &zone, &err), -EINVAL);
        assert_non_null(strstr(err.text, "Europe/Berlin"));
    }
}

static void unknown_zones_and_directories_are_not_found(void **state)
{
    struct time_zone *zone;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(time_zone_open("Europe/Berln", &zone, &err), -ENOENT);
    assert_non_null(strstr(err.text, "timedatectl list-timezones"));
    assert_int_equal(time_zone_open("Europe", &zone, &err), -ENOENT);
}

/* Version 2 with one type, the footer and 'more' bytes of transitions. */
static size_t make_file(uint8_t *file, const char *footer)
{
    static const uint8_t head[44] = { 'T', 'Z', 'i', 'f', '2', [39] = 1, [43] = 4 };
    static const uint8_t type[10] = { 0, 0, 14, 16, 0, 0, 'C', 'E', 'T', 0 };
    size_t len = 0;

    for (int i = 0; i < 2; i++) {
        memcpy(file + len, head, sizeof(head));
        memcpy(file + len + sizeof(head), type, sizeof(type));
        len += sizeof(head) + sizeof(type);
    }
    memcpy(file + len, footer, strlen(footer));
    return len + strlen(footer);
}

static int parse(const char *footer, int32_t *ret_offset)
{
    AQ_CLEANUP(time_zone_freep) struct time_zone *zone = NULL;
    uint8_t file[512];
    int r = time_zone_parse(file, make_file(file, footer), &zone, NULL);

    if (r == 0)
        *ret_offset = time_zone_find(zone, at("2026-07-01 00:00")).offset;
    return r;
}

static void footers_are_read_or_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "\n",
        "\nCET-1",
        "\nCE-1\n",
        "\nCET\n",
        "\nCET-1CEST\n",
        "\nCET-1CEST,M3.5.0\n",
        "\nCET-1CEST,M13.5.0,M10.5.0\n",
        "\nCET-1CEST,M3.6.0,M10.5.0\n",
        "\nCET-1CEST,J0,J1\n",
        "\nCET-1CEST,400,1\n",
        "\nCET-1CEST,M3.5.0/200,M10.5.0\n",
        "\nCET-1CEST,M3.5.0,M10.5.0x\n",
        "\nCET-99\n",
    };
    int32_t offset;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(wrong); i++)
        if (parse(wrong[i], &offset) != -EPROTO)
            fail_msg("accepted the footer '%s'", wrong[i]);
    assert_int_equal(parse("\n\n", &offset), 0); /* the last offset stays */
    assert_int_equal(offset, 3600);
    assert_int_equal(parse("\n<-03>3\n", &offset), 0);
    assert_int_equal(offset, -3 * 3600);
    assert_int_equal(parse("\nIST-1GMT0,M10.5.0,M3.5.0/1\n", &offset), 0); /* less in winter */
    assert_int_equal(offset, 3600);
    assert_int_equal(parse("\nEST5EDT,0/0,J365/25\n", &offset), 0); /* summer all year */
    assert_int_equal(offset, -4 * 3600);
    assert_int_equal(parse("\nXST-1XDT,J60,J300\n", &offset), 0);
    assert_int_equal(offset, 7200);
}

static void damaged_files_are_refused(void **state)
{
    uint8_t file[512];
    size_t len = make_file(file, "\nCET-1\n");
    struct time_zone *zone;

    (void)state;
    for (size_t i = 0; i < len; i++)
        assert_int_equal(time_zone_parse(file, i, &zone, NULL), -EPROTO);
    file[44 + 10 + 31] = 1; /* a leap second */
    assert_int_equal(time_zone_parse(file, len, &zone, NULL), -EPROTO);
    file[44 + 10 + 31] = 0;
    file[44 + 10 + 39] = 0; /* no type */
    assert_int_equal(time_zone_parse(file, len, &zone, NULL), -EPROTO);
    file[44 + 10 + 39] = 1;
    file[44 + 10 + 44] = 0x7f; /* an offset of years */
    assert_int_equal(time_zone_parse(file, len, &zone, NULL), -EPROTO);
}

static void days_of_the_calendar(void **state)
{
    (void)state;
    assert_int_equal(civil_to_days(1970, 1, 1), 0);
    assert_int_equal(civil_to_days(2000, 2, 29), 11016);
    for (int64_t days = -1000000; days < 1000000; days += 37) {
        struct civil_day day = civil_from_days(days);

        assert_int_equal(civil_to_days(day.year, day.month, day.day), days);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_are_those_of_tzdata),
        cmocka_unit_test(names_that_are_none_are_refused),
        cmocka_unit_test(unknown_zones_and_directories_are_not_found),
        cmocka_unit_test(footers_are_read_or_refused),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(days_of_the_calendar),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
