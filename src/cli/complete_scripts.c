/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts that let shells ask "aliquot completion words" what may come next. */
#include "cli/complete_scripts.h"

/* Bash splits words at '=' and ':', too: they are joined for the program, and
 * what is before the last of these signs is not repeated in the answer.
 */
static const char bash_script[] =
    "# bash completion for aliquot; use: source <(aliquot completion bash)\n"
    "_aliquot() {\n"
    "    local IFS=$'\\n' line word rest=\"${COMP_LINE:0:COMP_POINT}\" signs=\"\" head=\"\" i\n"
    "    local -a words=()\n"
    "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "        word=\"${COMP_WORDS[i]}\"\n"
    "        if [[ $i == 0 || $rest == [[:space:]]* ]]; then\n"
    "            rest=\"${rest#\"${rest%%[![:space:]]*}\"}\"\n"
    "            words+=(\"\")\n"
    "        fi\n"
    "        [[ $i == \"$COMP_CWORD\" ]] && word=\"$rest\"\n"
    "        words[${#words[@]}-1]+=\"$word\"\n"
    "        rest=\"${rest:${#word}}\"\n"
    "    done\n"
    "    word=\"${words[${#words[@]}-1]}\"\n"
    "    [[ $COMP_WORDBREAKS == *=* ]] && signs+=\"=\"\n"
    "    [[ $COMP_WORDBREAKS == *:* ]] && signs+=\":\"\n"
    "    [[ $signs && $word == *[$signs]* ]] && head=\"${word%\"${word##*[$signs]}\"}\"\n"
    "    COMPREPLY=()\n"
    "    while read -r line; do\n"
    "        line=\"${line%%$'\\t'*}\"\n"
    "        COMPREPLY+=(\"${line#\"$head\"}\")\n"
    "    done < <(\"${COMP_WORDS[0]}\" completion words -- \"${words[@]:1}\" 2>/dev/null)\n"
    "    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then\n"
    "        compopt -o nospace 2>/dev/null\n"
    "    fi\n"
    "}\n"
    "complete -o bashdefault -o default -F _aliquot aliquot\n";

static const char zsh_script[] =
    "#compdef aliquot\n"
    "# zsh completion for aliquot; use: source <(aliquot completion zsh)\n"
    "_aliquot() {\n"
    "    local -a candidates open\n"
    "    local line\n"
    "    while IFS= read -r line; do\n"
    "        [[ ${line%%$'\\t'*} == *= ]] && open+=(\"${line%%$'\\t'*}:${line#*$'\\t'}\") && continue\n"
    "        candidates+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
    "    done < <(\"${words[1]}\" completion words -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
    "    (( ${#open} )) && _describe aliquot open -S ''\n"
    "    if (( ${#candidates} )); then\n"
    "        _describe aliquot candidates\n"
    "    elif (( ! ${#open} )); then\n"
    "        _files\n"
    "    fi\n"
    "}\n"
    "if [[ $funcstack[1] == _aliquot ]]; then\n"
    "    _aliquot\n"
    "else\n"
    "    compdef _aliquot aliquot\n"
    "fi\n";

static const char fish_script[] =
    "# fish completion for aliquot; use: aliquot completion fish | source\n"
    "function __aliquot_complete\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    set -l found ($words[1] completion words -- $words[2..-1] 2>/dev/null)\n"
    "    if set -q found[1]\n"
    "        printf '%s\\n' $found\n"
    "    else\n"
    "        __fish_complete_path (commandline -ct)\n"
    "    end\n"
    "end\n"
    "complete -c aliquot -f -a '(__aliquot_complete)'\n";

const struct complete_shell complete_shells[3] = {
    { "bash", bash_script },
    { "zsh", zsh_script },
    { "fish", fish_script },
};
