/* SPDX-License-Identifier: Apache-2.0 */
/* text_pair.h - a name and what it stands for: a variable, a label, a line KEY=value
 *
 * Both texts are borrowed; the header of a list of pairs says from whom.
 */
#ifndef AQ_BASE_TEXT_PAIR_H
#define AQ_BASE_TEXT_PAIR_H

struct text_pair {
    const char *key, *value;
};

#endif
