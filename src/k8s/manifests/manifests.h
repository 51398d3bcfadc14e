/* SPDX-License-Identifier: Apache-2.0 */
/* manifests.h - `aliquot-k8s manifests`: all objects of an installation, as YAML
 *
 * The texts are those of the Helm chart (packaging/helm): what its templates use is little enough
 * to be filled in here.
 */
#ifndef AQ_K8S_MANIFESTS_MANIFESTS_H
#define AQ_K8S_MANIFESTS_MANIFESTS_H

#include "base/error.h"
#include "base/strbuf.h"

/* A template with each {{ .Values.NAME }} and {{ .Release.Namespace }} filled in, and the lines
 * between {{- if .Values.NAME }} and {{- end }} only if that is neither false nor empty. 'values'
 * has a line "NAME: VALUE" for each; later ones win. -EINVAL for a template that uses anything
 * else.
 */
int manifests_fill(const char *template, const char *values, const char *namespace,
                   struct strbuf *out, struct aq_error *err);

/* The words after the sub-command; the process's exit status. */
int manifests_command(int count, char *const *words);

#endif
