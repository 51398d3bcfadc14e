/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - what an agent needs for sessions that are processes */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pwd.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/doctor/doctor_internal.h"
#include "agent/identity.h"
#include "agent/runtime/sync_tool.h"
#include "base/clock.h"
#include "check/machine.h"
#include "link/link.h"
#include "link/pki.h"

#define OWNER "aliquot-agent"
#define CONNECT_MSEC 3000

void doctor_check_user(void *data, struct finding *ret)
{
    const struct doctor *d = data;
    const char *name = d->settings->user;
    const struct passwd *own = getpwuid(geteuid());

    if (name && !getpwnam(name)) {
        finding_say(ret, CHECK_MISSING, "there is no user '%s'", name);
        finding_mean(ret, OWNER " does not start");
        finding_mend(ret, "useradd --system %s, or another [process] user in agent.toml", name);
    } else if (name && geteuid() != 0) {
        finding_say(ret, CHECK_MISSING, "only root can run programs as the user '%s'", name);
        finding_mean(ret, "sessions as processes do not start");
        finding_mend(ret, "sudo " OWNER);
    } else {
        finding_say(ret, CHECK_OK, "sessions as processes run as %s",
                    name  ? name
                    : own ? own->pw_name
                          : "this user");
    }
}

/* ---- the kernel ---- */

static bool doctor_has_call(long result)
{
    return result >= 0 || errno != ENOSYS;
}

/* Calls that everything relies on; the newest, openat2, came with Linux 5.6. */
static const char *doctor_find_lacking_call(void)
{
    AQ_CLEANUP(aq_closep) int process = pidfd_open(getpid(), 0);

    if (!doctor_has_call(process))
        return "pidfd_open";
    if (!doctor_has_call(syscall(SYS_clone3, NULL, 0)))
        return "clone3";
    if (!doctor_has_call(syscall(SYS_openat2, -1, "", NULL, 0)))
        return "openat2";
    return NULL;
}

void doctor_check_kernel(void *data, struct finding *ret)
{
    const char *lacking = doctor_find_lacking_call();
    struct utsname names = { .release = "?" };

    (void)data;
    (void)uname(&names);
    if (!lacking) {
        finding_say(ret, CHECK_OK, "Linux %s has what is needed", names.release);
        return;
    }
    finding_say(ret, CHECK_MISSING, "Linux %s has no %s()", names.release, lacking);
    finding_mean(ret, "sessions do not start; if this is a container, its filter of system calls "
                      "is older than this program");
    finding_mend(ret, "apt install linux-image-amd64; reboot");
}

/* ---- files and programs ---- */

void doctor_check_state(void *data, struct finding *ret)
{
    const struct doctor *d = data;

    machine_check_folder(d->settings->state, OWNER, ret);
}

void doctor_check_monitor(void *data, struct finding *ret)
{
    const struct doctor *d = data;
    const char *argv[] = { d->monitor, "--version", NULL };
    struct aq_error err = { 0 };

    if (tool_run(argv, NULL, &err) == 0) {
        finding_say(ret, CHECK_OK, "%s starts", d->monitor);
        return;
    }
    finding_say(ret, CHECK_MISSING, "%s", err.text);
    finding_mean(ret, "sessions do not start");
    finding_mend(ret, "install Aliquot again, or set [process] monitor in agent.toml");
}

/* ---- the cluster ---- */

void doctor_check_identity(void *data, struct finding *ret)
{
    const struct doctor *d = data;
    AQ_CLEANUP(aq_freep) char *path = settings_path(d->settings, "agent.crt");
    struct link_identity identity = { .key = NULL };
    struct pki_cert cert;
    struct aq_error err = { 0 };
    int r = identity_load(d->settings, &identity, &err);

    if (r == 0)
        r = pki_cert_read(identity.cert, &cert, &err);
    if (r == 0)
        machine_judge_certificate(path, cert.not_after_usec, clock_realtime_usec(),
                                  "aliquot agent token; " OWNER " join MANAGER:8082 TOKEN", ret);
    else
        finding_say(ret, r == -ENOENT ? CHECK_WARNING : CHECK_MISSING, "%s", err.text);
    if (r < 0) {
        finding_mean(ret, OWNER " does not start; 'aliquot up' joins by itself");
        finding_mend(ret, "aliquot agent token; " OWNER " join MANAGER:8082 TOKEN");
    }
    link_identity_done(&identity);
}

static int doctor_wait_for_connection(int fd)
{
    struct pollfd wait_for = { .fd = fd, .events = POLLOUT };
    int code = 0;
    socklen_t size = sizeof(code);

    if (poll(&wait_for, 1, CONNECT_MSEC) <= 0)
        return -ETIMEDOUT;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0 ? -errno : -code;
}

static int doctor_connect_one(const struct addrinfo *address)
{
    AQ_CLEANUP(aq_closep) int fd = socket(address->ai_family,
                                          SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
        return 0;
    return errno == EINPROGRESS ? doctor_wait_for_connection(fd) : -errno;
}

static int doctor_connect(const struct conf_listen *manager, struct aq_error *err)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    char port[8];
    int r;

    (void)snprintf(port, sizeof(port), "%u", manager->port);
    r = getaddrinfo(manager->host, port, &hints, &found);
    if (r)
        return aq_fail(err, EHOSTUNREACH, "%s", gai_strerror(r));
    r = -EHOSTUNREACH;
    for (const struct addrinfo *a = found; r < 0 && a; a = a->ai_next)
        r = doctor_connect_one(a);
    freeaddrinfo(found);
    return r < 0 ? aq_fail(err, -r, "%s", strerror(-r)) : 0;
}

/* One that can be reached is enough: it leads, or names the one that does. */
void doctor_check_manager(void *data, struct finding *ret)
{
    const struct doctor *d = data;
    AQ_CLEANUP(link_identity_done) struct link_identity identity = { .key = NULL };
    AQ_CLEANUP(strbuf_donep) struct strbuf failures = STRBUF_INIT;

    if (identity_load(d->settings, &identity, NULL) < 0)
        return; /* doctor_check_identity() has said that */
    for (size_t i = 0; i < identity.addresses.count; i++) {
        const char *address = identity.addresses.items[i];
        struct conf_listen manager = { .host = NULL };
        struct aq_error err = { 0 };
        int r = conf_parse_address(address, LINK_PORT, &manager, &err);

        if (r == 0)
            r = doctor_connect(&manager, &err);
        free(manager.host);
        if (r == 0) {
            finding_say(ret, CHECK_OK, "there is a connection to %s", address);
            return;
        }
        strbuf_addf(&failures, "%s%s: %s", i ? "; " : "", address, err.text);
    }
    finding_say(ret, CHECK_MISSING, "the manager cannot be reached at %s", failures.data);
    finding_mean(ret, "no session comes to this machine");
    finding_mend(ret, "systemctl start aliquot-manager there, and let its firewall pass port %u",
                 identity.manager.port);
}

/* ---- limits and time ---- */

void doctor_check_files(void *data, struct finding *ret)
{
    (void)data;
    machine_check_files(ret);
}

void doctor_check_clock(void *data, struct finding *ret)
{
    (void)data;
    machine_check_clock(ret);
}
