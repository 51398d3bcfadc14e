/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-play: runs a simulated cluster from a seed. `aliquot sim --play` runs it.
 *
 * A seed is a process, as simulated clocks and threads begin once in a process: with
 * --until-failure each is a child of this one.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "sim/play/play.h"

#define SEEDS_MAX 1000000
#define SESSIONS_PER_AGENT_HOUR 30
#define SESSIONS_PER_HOUR_DEFAULT_MAX 420 /* 10,000 a day */

static const char main_usage[] =
    "Usage: aliquot sim --play SEED [OPTIONS]\n"
    "\n"
    "Run a real manager and real agents in one process, over a simulated network, disk, clock and\n"
    "runtime, under a load and faults that the seed decides, and check what was promised. The same\n"
    "seed and options give the same events and the same report.\n"
    "\n"
    "      --agents N         20\n"
    "      --gpus N           of each agent; 2\n"
    "      --hours X          of simulated time under load; 4\n"
    "      --sessions X       requested in an hour; 30 for each agent, at most 420\n"
    "      --faults F         none, some, many, or a list of crash, partition, stall, disk, clock;\n"
    "                         some\n"
    "      --until-failure N  this seed and those after it, N at most, until one breaks an invariant\n"
    "      --trace            write what happens to standard error\n"
    "      --json             a JSON object for each seed\n"
    "      --help, --version\n"
    "\n"
    "Exit status: 0 no invariant was broken, 1 one was, 2 the command line is wrong.\n";

struct main_options {
    struct play_options play;
    int seeds;
    bool json, help, version;
};

static int main_parse_number(const char *option, const char *text, double min, double max,
                             double *ret, struct aq_error *err)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !(value >= min && value <= max))
        return aq_fail_field(err, EINVAL, option, "%s must be a number from %g to %g, not '%.40s'",
                             option, min, max, text);
    *ret = value;
    return 0;
}

static int main_parse_count(const char *option, const char *text, int min, int max, int *ret,
                            struct aq_error *err)
{
    double value = 0;
    int r = main_parse_number(option, text, min, max, &value, err);

    *ret = (int)value;
    if (r == 0 && value != *ret)
        return aq_fail_field(err, EINVAL, option, "%s must be a whole number, not '%.40s'", option,
                             text);
    return r;
}

static int main_parse_seed(const char *text, uint64_t *ret, struct aq_error *err)
{
    char *end;

    errno = 0;
    *ret = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        return aq_fail_field(err, EINVAL, "--play",
                             "--play must be a whole number from 0 to 18446744073709551615, not "
                             "'%.40s'",
                             text);
    return 0;
}

static int main_take(int letter, const char *value, struct main_options *o, struct aq_error *err)
{
    struct play_options *play = &o->play;

    switch (letter) {
    case 'p':
        return main_parse_seed(value, &play->seed, err);
    case 'a':
        return main_parse_count("--agents", value, 1, PLAY_AGENTS_MAX, &play->agents, err);
    case 'g':
        return main_parse_count("--gpus", value, 0, 16, &play->gpus, err);
    case 'h':
        return main_parse_number("--hours", value, 0.1, PLAY_HOURS_MAX, &play->hours, err);
    case 's':
        return main_parse_number("--sessions", value, 1, 1e6, &play->sessions_per_hour, err);
    case 'f':
        return play_faults_parse(value, &play->faults, &play->fault_scale, err);
    case 'u':
        return main_parse_count("--until-failure", value, 1, SEEDS_MAX, &o->seeds, err);
    case 't':
        play->trace = true;
        return 0;
    case 'j':
        o->json = true;
        return 0;
    case 'H':
        o->help = true;
        return 0;
    default:
        o->version = true;
        return 0;
    }
}

static int main_parse(int argc, char **argv, struct main_options *o, struct aq_error *err)
{
    static const struct option known[] = {
        { "play", required_argument, NULL, 'p' },
        { "agents", required_argument, NULL, 'a' },
        { "gpus", required_argument, NULL, 'g' },
        { "hours", required_argument, NULL, 'h' },
        { "sessions", required_argument, NULL, 's' },
        { "faults", required_argument, NULL, 'f' },
        { "until-failure", required_argument, NULL, 'u' },
        { "trace", no_argument, NULL, 't' },
        { "json", no_argument, NULL, 'j' },
        { "help", no_argument, NULL, 'H' },
        { "version", no_argument, NULL, 'V' },
        { NULL, 0, NULL, 0 },
    };
    bool has_seed = false;
    int letter, r;

    opterr = 0;
    while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (letter == '?')
            return aq_fail(err, EINVAL, "'%.60s' is not an option, or its value is missing",
                           argv[optind - 1]);
        has_seed = has_seed || letter == 'p';
        if ((r = main_take(letter, optarg, o, err)) < 0)
            return r;
    }
    if (o->help || o->version)
        return 0;
    if (optind < argc)
        return aq_fail(err, EINVAL, "'%.60s': there are no arguments beside options", argv[optind]);
    if (!has_seed)
        return aq_fail_field(err, EINVAL, "--play", "--play is missing");
    if (o->play.sessions_per_hour <= 0)
        o->play.sessions_per_hour = AQ_MIN(o->play.agents * SESSIONS_PER_AGENT_HOUR,
                                           SESSIONS_PER_HOUR_DEFAULT_MAX);
    return 0;
}

/* The files of the run are removed then. */
static void main_on_signal(int number)
{
    (void)number;
    play_interrupt();
}

static void main_catch_signals(void)
{
    const struct sigaction action = { .sa_handler = main_on_signal };

    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
}

/* In this process. Returns the exit status. */
static int main_play(const struct main_options *o)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    bool is_well;

    main_catch_signals();
    is_well = play_run(&o->play, o->json, &out);
    return fputs(out.data, stdout) < 0 || fflush(stdout) < 0 || !is_well;
}

/* In a child for each seed, until one does not end with 0. */
static int main_play_many(struct main_options *o)
{
    for (int i = 0; i < o->seeds; i++, o->play.seed++) {
        pid_t child = fork();
        int status = 0;

        if (child == 0)
            _exit(main_play(o));
        if (child < 0 || waitpid(child, &status, 0) < 0) {
            (void)fprintf(stderr, "aliquot sim: start a process for seed %" PRIu64 ": %s\n",
                          o->play.seed, strerror(errno));
            return 1;
        }
        if (WIFSIGNALED(status))
            (void)fprintf(stderr, "aliquot sim: seed %" PRIu64 " ended by signal %d (%s)\n",
                          o->play.seed, WTERMSIG(status), strsignal(WTERMSIG(status)));
        if (status)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct main_options o = { .play = { .agents = 20,
                                        .gpus = 2,
                                        .hours = 4,
                                        .faults = (1u << PLAY_FAULT_COUNT) - 1,
                                        .fault_scale = 1 } };
    struct aq_error err = { 0 };

    if (main_parse(argc, argv, &o, &err) < 0) {
        (void)fprintf(stderr, "aliquot sim: %s; see aliquot sim --help\n", err.text);
        return 2;
    }
    if (o.help || o.version)
        return fputs(o.help ? main_usage : "aliquot-play " ALIQUOT_VERSION "\n", stdout) < 0;
    log_init("play", o.play.trace ? LOG_LEVEL_INFO : LOG_LEVEL_NONE);
    /* Processes of hosts that have crashed leave their memory: nothing looks for it. */
    _exit(o.seeds ? main_play_many(&o) : main_play(&o));
}
