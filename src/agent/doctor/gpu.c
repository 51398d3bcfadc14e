/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.c - what an agent needs to give GPUs to sessions */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "accel/protocol.h"
#include "accelhost/accel.h"
#include "agent/doctor/doctor_internal.h"
#include "base/fs.h"
#include "base/installed.h"
#include "base/memory.h"

#define VENDOR_NVIDIA "0x10de"
#define CLASS_DISPLAY "0x03"

static const char *doctor_root(void)
{
    const char *root = getenv(ACCEL_ROOT_VARIABLE);

    return root ? root : "";
}

static bool doctor_starts_with(const char *directory, const char *name, const char *wanted)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", directory, name);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    return fs_read(AT_FDCWD, path, 64, &text, NULL) == 0
           && strncmp(text.data, wanted, strlen(wanted)) == 0;
}

/* Is there a card on the bus, whether or not a driver has it? */
static bool doctor_has_card(void)
{
    AQ_CLEANUP(aq_freep) char *bus = aq_format("%s/sys/bus/pci/devices", doctor_root());
    DIR *dir = opendir(bus);
    struct dirent *entry;
    bool is_found = false;

    while (dir && !is_found && (entry = readdir(dir))) {
        AQ_CLEANUP(aq_freep) char *device = aq_format("%s/%s", bus, entry->d_name);

        is_found = doctor_starts_with(device, "vendor", VENDOR_NVIDIA)
                   && doctor_starts_with(device, "class", CLASS_DISPLAY);
    }
    if (dir)
        (void)closedir(dir);
    return is_found;
}

static bool doctor_has_driver(void)
{
    AQ_CLEANUP(aq_freep) char *node = aq_format("%s/dev/nvidiactl", doctor_root());

    return access(node, F_OK) == 0;
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 ..." */
static void doctor_say_driver(struct finding *ret)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/proc/driver/nvidia/version", doctor_root());
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *version = NULL;

    if (fs_read(AT_FDCWD, path, 4096, &text, NULL) == 0)
        version = strpbrk(text.data, "0123456789") ? strstr(text.data, "Module") : NULL;
    version = version ? version + strcspn(version, "0123456789") : "";
    finding_say(ret, CHECK_OK, "NVIDIA %.*s", (int)strcspn(version, " \n"), version);
}

void doctor_check_driver(void *data, struct finding *ret)
{
    (void)data;
    if (doctor_has_driver()) {
        doctor_say_driver(ret);
    } else if (doctor_has_card()) {
        finding_say(ret, CHECK_MISSING,
                    "there is an NVIDIA GPU, but no driver has it "
                    "(/dev/nvidiactl is missing)");
        finding_mean(ret, "sessions get no GPU here");
        finding_mend(ret, "apt install nvidia-driver (of non-free); modprobe nvidia; nvidia-smi");
    } else {
        finding_say(ret, CHECK_ABSENT, "there is no NVIDIA GPU");
    }
}

/* ---- what the plugins find ---- */

static void doctor_on_devices(void *data)
{
    (void)data;
}

struct doctor_devices {
    struct strbuf text, errors;
    size_t count;
};

static void doctor_add_plugin(const struct accel_plugin *p, struct doctor_devices *found)
{
    const char *why = p->error ? p->error
                      : p->status == ACCEL_UNAVAILABLE || p->status == ACCEL_OFFLINE
                          ? p->status_text
                          : NULL;

    if (why)
        strbuf_addf(&found->errors, "%s%s: %s", found->errors.len ? "; " : "", p->name, why);
    if (!p->device_count)
        return;
    strbuf_addf(&found->text, "%s%zu by %s", found->text.len ? ", " : "", p->device_count, p->name);
    if (p->devices[0].model)
        strbuf_addf(&found->text, " (%s)", p->devices[0].model);
    found->count += p->device_count;
}

static void doctor_check_devices(const struct doctor_devices *found, struct finding *ret)
{
    if (!found->errors.len && found->count) {
        finding_say(ret, CHECK_OK, "%s", found->text.data);
    } else if (found->errors.len || doctor_has_driver()) {
        finding_say(ret, CHECK_MISSING, "%s",
                    found->errors.len ? found->errors.data
                                      : "there is a driver, but no plugin found a device");
        finding_mean(ret, "sessions do not get these devices");
        finding_mend(ret, "nvidia-smi; apt install libcuda1 libnvidia-ml1; aliquot-accel "
                          "--describe PLUGIN.so says more");
    }
}

void doctor_check_plugins(void *data, struct finding *ret)
{
    struct doctor *d = data;
    struct doctor_devices found = { .text = STRBUF_INIT, .errors = STRBUF_INIT };
    const struct accel_plugin *plugin;
    struct accel *accel = NULL;
    struct aq_error err = { 0 };

    if (accel_new(&d->loop, &d->settings->accel, doctor_on_devices, d, &accel, &err) < 0) {
        finding_say(ret, CHECK_MISSING, "%s", err.text);
        finding_mean(ret, "aliquot-agent does not start");
        finding_mend(ret, "see [accelerators] in agent.toml");
        return;
    }
    for (size_t i = 0; (plugin = accel_plugin(accel, i)); i++)
        doctor_add_plugin(plugin, &found);
    doctor_check_devices(&found, ret);
    strbuf_done(&found.text);
    strbuf_done(&found.errors);
    accel_free(accel);
}

/* ---- what holds sessions to their part ---- */

void doctor_check_slices(void *data, struct finding *ret)
{
    const struct doctor *d = data;
    const struct {
        const char *configured, *name, *key;
    } files[] = { { d->settings->gpu_library, "libaliquot-gpu.so", "library" },
                  { d->settings->gpu_probe, "aliquot-gpu-probe", "probe" },
                  { d->settings->gpu_watch, "aliquot-gpu", "watch" } };

    for (size_t i = 0; i < AQ_COUNT(files); i++) {
        AQ_CLEANUP(aq_freep) char *path = files[i].configured ? aq_strdup(files[i].configured)
                                                              : installed_find(files[i].name);

        if (path && access(path, R_OK) == 0)
            continue;
        finding_say(ret, doctor_has_driver() ? CHECK_MISSING : CHECK_ABSENT, "%s is missing",
                    path ? path : files[i].name);
        finding_mean(ret, "sessions get whole GPUs only");
        finding_mend(ret, "apt install aliquot-gpu, or set [gpu] %s in agent.toml", files[i].key);
        return;
    }
    finding_say(ret, CHECK_OK, "libaliquot-gpu.so, aliquot-gpu-probe and aliquot-gpu are there");
}
