/* SPDX-License-Identifier: Apache-2.0 */
/* containers.c - what an agent needs for sessions that are containers */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "agent/doctor/doctor_internal.h"
#include "agent/settings/net_settings.h"
#include "agent/runtime/oci.h"
#include "agent/runtime/overlay.h"
#include "agent/runtime/sync_tool.h"
#include "agent/ssh/ssh.h"
#include "base/fs.h"
#include "check/machine.h"

#define NETWORK_MSEC 30000
#define NO_CONTAINERS "containers cannot run"

static bool doctor_has_containers(const struct doctor *d)
{
    return strcmp(d->settings->driver, "process") != 0;
}

/* Can anything be tried? If not, doctor_check_root() says why. */
static bool doctor_has_directory(struct doctor *d)
{
    if (!doctor_has_containers(d) || geteuid() != 0)
        return false;
    (void)doctor_try(d);
    return d->has_directory;
}

/* And has the node what all containers need? If not, another check says why. */
bool doctor_can_try(struct doctor *d)
{
    return doctor_has_directory(d) && doctor_try(d) == 0;
}

void doctor_check_root(void *data, struct finding *ret)
{
    struct doctor *d = data;

    if (!doctor_has_containers(d)) {
        finding_say(ret, CHECK_ABSENT, "turned off by driver = \"process\" in [runtime]");
        return;
    }
    if (geteuid() != 0) {
        finding_say(ret, CHECK_MISSING, NO_CONTAINERS ": the agent is not run by root");
        finding_mean(ret, "sessions run as processes of this user");
        finding_mend(ret, "sudo aliquot doctor containers; then start the agent, or aliquot up, "
                          "with sudo");
    } else if (!doctor_has_directory(d)) {
        finding_say(ret, CHECK_MISSING, NO_CONTAINERS ": %s", d->trial_err.text);
        finding_mean(ret, "nothing else could be tried");
        finding_mend(ret, "df -h %s %s; ls -ld %s %s", d->settings->state, d->settings->run,
                     d->settings->state, d->settings->run);
    } else {
        finding_say(ret, CHECK_OK, "this is root");
    }
}

/* ---- file systems ---- */

/* With loop devices the upper part is on an image file, so only the kernel has to know overlayfs.
 */
void doctor_check_overlay(void *data, struct finding *ret)
{
    struct doctor *d = data;
    struct aq_error err = { 0 };
    bool has_images;

    if (!doctor_has_directory(d))
        return;
    has_images = doctor_try(d) == 0 && d->host.scratch_template;
    if (overlay_check(d->trial_directory, &err) == 0) {
        finding_say(ret, CHECK_OK, "works at %s", d->settings->state);
        return;
    }
    if (has_images && err.code == EINVAL) {
        finding_say(ret, CHECK_OK, "works on loop devices, though not at %s", d->settings->state);
        return;
    }
    finding_say(ret, CHECK_MISSING, NO_CONTAINERS ": %s", err.text);
    finding_mean(ret, "layers of images cannot be put together");
    if (err.code == ENODEV)
        finding_mend(ret, "modprobe overlay");
    else if (err.code == EPERM)
        finding_mend(ret, "give this container CAP_SYS_ADMIN (docker run --privileged)");
    else
        finding_mend(ret, "modprobe loop, or mount ext4, xfs or btrfs at %s", d->settings->state);
}

/* Images in use give way to nobody. */
static void doctor_check_keep_free(const struct settings *settings, struct finding *ret)
{
    int64_t need = settings_scratch_need(settings);

    if (!settings->image_keep_free || settings->image_keep_free >= need
        || settings->image_directory)
        return;
    finding_say(ret, CHECK_WARNING, "images may leave less than the %lld MiB that it needs",
                (long long)(need >> 20));
    finding_mean(ret, "while sessions use large images, no other one may find room to start");
    finding_mend(ret, "remove keep-free from [image] of agent.toml, or set it to %lldm",
                 (long long)(need >> 20));
}

void doctor_check_scratch(void *data, struct finding *ret)
{
    AQ_CLEANUP(aq_freep) char *mkfs = tool_find("mkfs.ext4");
    struct doctor *d = data;

    if (!doctor_can_try(d))
        return;
    if (!d->host.notes[OCI_SCRATCH][0]) {
        finding_say(ret, CHECK_OK, "has a limit, by file systems on loop devices");
        doctor_check_keep_free(d->settings, ret);
        return;
    }
    finding_say(ret, CHECK_WARNING, "%s", d->host.notes[OCI_SCRATCH]);
    finding_mean(ret, "a session can fill the disk of this machine");
    if (access("/dev/loop-control", R_OK | W_OK) < 0)
        finding_mend(ret, "modprobe loop");
    else if (!mkfs)
        finding_mend(ret, "apt install e2fsprogs");
    else
        finding_mend(ret, "df -h %s", d->settings->state);
}

/* ---- cgroups, users, system calls ---- */

static void doctor_mend_cgroups(const struct cgroup_layout *layout, struct finding *ret)
{
    const struct cgroup_hierarchy *v2 = cgroup_find_v2(layout);

    if (layout->count == 0)
        finding_mend(ret, "mount -t cgroup2 none /sys/fs/cgroup");
    else if (v2 && !v2->parent)
        finding_mend(ret, "mount -o remount,rw %s, or Delegate=yes in the unit", v2->mount);
    else if (v2 && layout->count == 1)
        finding_mend(ret,
                     "cat %s/cgroup.controllers; what is missing there the kernel's command "
                     "line turns on, as cgroup_enable=memory",
                     v2->mount);
    else
        finding_mend(ret, "cat /proc/cgroups; mount -t cgroup -o NAME none /sys/fs/cgroup/NAME for "
                          "what is missing");
}

void doctor_check_cgroups(void *data, struct finding *ret)
{
    struct doctor *d = data;

    if (!doctor_can_try(d))
        return;
    if (!d->host.notes[OCI_CGROUPS][0]) {
        finding_say(ret, CHECK_OK,
                    "%s: processor time, cores, memory, processes and devices can be "
                    "limited",
                    cgroup_layout_name(&d->host.cgroups));
        return;
    }
    finding_say(ret, CHECK_WARNING, "%s", d->host.notes[OCI_CGROUPS]);
    finding_mean(ret, "sessions can use more than their share");
    doctor_mend_cgroups(&d->host.cgroups, ret);
}

void doctor_check_users(void *data, struct finding *ret)
{
    struct doctor *d = data;

    if (!doctor_can_try(d))
        return;
    if (d->settings->id_ranges == 0) {
        finding_say(ret, CHECK_WARNING, "turned off by id-ranges = 0 in [container]");
        finding_mean(ret, "root in a session is root here, without most of its rights");
    } else if (d->host.notes[OCI_USERS][0]) {
        finding_say(ret, CHECK_WARNING, "%s", d->host.notes[OCI_USERS]);
        finding_mean(ret,
                     "containers run, but root in one is root here, without most of its rights");
        finding_mend(ret, "sysctl -w user.max_user_namespaces=65536");
    } else if (d->host.notes[OCI_IMAGE_USERS][0]) {
        finding_say(ret, CHECK_WARNING, "%s", d->host.notes[OCI_IMAGE_USERS]);
        finding_mean(ret, "containers run, but without user namespaces: root in one is root here, "
                          "without most of its rights");
        finding_mend(ret, "mount ext4, xfs or btrfs at %s (Linux 5.12 or later)",
                     d->settings->state);
    } else {
        finding_say(ret, CHECK_OK, "work, with mapped users at %s", d->settings->state);
    }
}

void doctor_check_seccomp(void *data, struct finding *ret)
{
    struct doctor *d = data;

    if (!doctor_can_try(d))
        return;
    if (!d->host.notes[OCI_SECCOMP][0]) {
        finding_say(ret, CHECK_OK, "are filtered by %s", d->settings->seccomp);
        return;
    }
    finding_say(ret, CHECK_WARNING, "%s", d->host.notes[OCI_SECCOMP]);
    finding_mean(ret, "containers run, but may use every system call that makes no "
                      "namespace and no socket of AF_VSOCK");
    finding_mend(ret, "apt install golang-github-containers-common");
}

/* ---- programs ---- */

/* Without rights: what is installed. */
static void doctor_find_runtime(struct finding *ret)
{
    AQ_CLEANUP(aq_freep) char *crun = tool_find("crun"), *runc = tool_find("runc");

    if (!crun && !runc) {
        finding_say(ret, CHECK_MISSING, NO_CONTAINERS ": neither crun nor runc is installed");
        finding_mend(ret, "apt install crun");
    } else {
        finding_say(ret, CHECK_OK, "%s is installed; it was not tried without rights",
                    crun ? crun : runc);
    }
}

void doctor_check_runtime(void *data, struct finding *ret)
{
    struct doctor *d = data;
    struct runtime *rt = NULL;
    struct aq_error err = { 0 };

    if (doctor_has_containers(d) && geteuid() != 0)
        doctor_find_runtime(ret);
    if (!doctor_has_directory(d))
        return;
    if (runtime_new_oci(&d->loop, &d->trial_settings, d->monitor, d->runner, &rt, &err) == 0) {
        finding_say(ret, CHECK_OK, "%s; a trial container ran", runtime_oci_version(rt));
        d->has_runtime = true;
        runtime_free(rt);
        return;
    }
    finding_say(ret, CHECK_MISSING, NO_CONTAINERS ": %s", err.text);
    finding_mean(ret, "sessions with an image are refused");
    if (strstr(err.text, "not installed"))
        finding_mend(ret, "apt install crun");
    else
        finding_mend(ret, "mend what is named above; else try apt install crun runc");
}

void doctor_check_images(void *data, struct finding *ret)
{
    struct doctor *d = data;
    const char *name = d->settings->image_skopeo ? d->settings->image_skopeo : "skopeo";
    AQ_CLEANUP(aq_freep) char *path = tool_find(name);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *argv[] = { path, "--version", NULL };
    struct aq_error err = { 0 };

    if (!doctor_has_containers(d))
        return;
    if (path && tool_run(argv, &text, &err) == 0) {
        finding_say(ret, CHECK_OK, "%.*s fetches them", (int)strcspn(text.data, "\n"), text.data);
        return;
    }
    finding_say(ret, CHECK_MISSING, "%s", path ? err.text : "skopeo is not installed");
    finding_mean(ret,
                 "no image can be fetched from a registry; only \"host\" and rootfs:/PATH work");
    finding_mend(ret, "apt install skopeo");
}

void doctor_check_ssh(void *data, struct finding *ret)
{
    const struct doctor *d = data;
    AQ_CLEANUP(ssh_freep) struct ssh *ssh = NULL;
    struct aq_error err = { 0 };

    if (!doctor_has_containers(d) || !d->settings->network || !d->settings->network_ssh)
        return;
    if (ssh_new(SSH_SERVER, d->runner, &ssh, &err) == 0 && ssh_has_sftp(ssh)) {
        finding_say(ret, CHECK_OK, "%s is there, and for SFTP %s", SSH_SERVER, SSH_SFTP_SERVER);
        return;
    }
    if (ssh) {
        finding_say(ret, CHECK_WARNING, "the SSH server of containers has no SFTP: no %s",
                    SSH_SFTP_SERVER);
        finding_mean(ret, "sftp, scp and editors cannot move files; ssh and aliquot cp can");
        finding_mend(ret, "apt install openssh-sftp-server");
        return;
    }
    finding_say(ret, CHECK_WARNING, "containers have no SSH server: %s", err.text);
    finding_mean(ret, "nobody can log in by ssh; aliquot session attach works");
    finding_mend(ret, "apt install dropbear-bin");
}

/* After it has been tried: many who set such a sign leave all rights. */
void doctor_check_inside(void *data, struct finding *ret)
{
    const struct doctor *d = data;
    const char *sign = machine_find_container("");

    if (!sign)
        return;
    if (d->has_runtime) {
        finding_say(ret, CHECK_OK, "this machine is a container (%s), and containers work in it",
                    sign);
        return;
    }
    finding_say(ret, CHECK_WARNING, "this machine is a container (%s)", sign);
    finding_mean(ret, "sessions as processes work; for containers it must be privileged, with "
                      "cgroups that can be written and a state folder that is no overlay");
    finding_mend(ret, "docker run --privileged --cgroupns=private -v aliquot:/var/lib/aliquot ...");
}

/* ---- the network ---- */

struct doctor_network {
    uv_loop_t *loop;
    struct net_endpoint *endpoint;
    struct aq_error err;
};

static void doctor_on_network(void *data, const struct aq_error *err)
{
    struct doctor_network *n = data;

    if (err)
        n->err = *err;
    uv_stop(n->loop);
}

/* A network of a kernel, in a network of this process alone. */
static int doctor_open_network(struct doctor *d, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const struct net_request request = { .kernel_id = uuid_random(),
                                         .session_id = uuid_random(),
                                         .hostname = "main1" };
    struct net_settings settings;
    struct net *net = NULL;
    uv_loop_t loop;
    struct doctor_network n = { .loop = &loop };
    int r;

    if (mount("run", d->trial_directory, "tmpfs", 0, "size=4m") < 0)
        return aq_fail_errno(err, "mount a tmpfs");
    r = uv_loop_init(&loop);
    if (r < 0)
        return aq_fail(err, -r, "start an event loop: %s", uv_strerror(r));
    net_settings_fill(&settings, &d->trial_settings, "check", &arena);
    settings.run_dir = d->trial_directory;
    r = net_new(&loop, &settings, &net, err);
    if (r == 0)
        r = net_open(net, &request, doctor_on_network, &n, &n.endpoint, err);
    if (r == 0) {
        (void)uv_run(&loop, UV_RUN_DEFAULT);
        r = n.err.code ? aq_fail(err, n.err.code, "%s", n.err.text) : 0;
    }
    return r; /* all of it goes with this process */
}

static void doctor_mend_network(const struct aq_error *err, struct finding *ret)
{
    if (strstr(err->text, "nftables"))
        finding_mend(ret, "apt install nftables");
    else if (strstr(err->text, "nft"))
        finding_mend(ret, "modprobe nf_tables nft_nat nft_chain_nat");
    else if (err->code == EOPNOTSUPP)
        finding_mend(ret, "modprobe veth");
    else
        finding_mend(ret, "see [network] in agent.toml; enabled = false turns it off");
}

void doctor_check_network(void *data, struct finding *ret)
{
    struct doctor *d = data;
    struct aq_error err = { 0 };

    if (!doctor_can_try(d))
        return;
    if (!d->settings->network) {
        finding_say(ret, CHECK_WARNING, "turned off by enabled = false in [network]");
        finding_mean(ret, "containers see nothing but themselves");
        return;
    }
    if (doctor_run_apart(doctor_open_network, d, NETWORK_MSEC, &err) == 0) {
        finding_say(ret, CHECK_OK, "namespaces, veth and nftables work");
        return;
    }
    finding_say(ret, CHECK_WARNING, "containers have no network: %s", err.text);
    finding_mean(ret, "they run, but see nothing but themselves");
    doctor_mend_network(&err, ret);
}
