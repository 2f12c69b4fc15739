package shell

import (
	"slices"
	"strings"
)

// modern rewrites the old forms of commands that ZooKeeper's CLI had, and returns a notice about them.
func modern(words []string) ([]string, string) {
	name, rest := words[0], words[1:]
	var operands []int
	for i, w := range words {
		if i > 0 && !strings.HasPrefix(w, "-") && !slices.Contains([]string{"-o", "--output", "-v", "--version"}, words[i-1]) {
			operands = append(operands, i)
		}
	}
	second := func(option ...string) []string {
		at := operands[1]
		return slices.Concat(words[:at], option, words[at+1:])
	}
	switch {
	case name == "ls2":
		return append([]string{"ls", "-s"}, rest...), "'ls2' has been deprecated. Please use 'ls [-s] path' instead."
	case name == "rmr":
		return append([]string{"deleteall"}, rest...), "'rmr' has been deprecated. Please use 'deleteall' instead."
	case name == "get" && len(operands) == 2:
		return second("-w"), "'get path [watch]' has been deprecated. Please use 'get [-s] [-w] path' instead."
	case (name == "ls" || name == "stat") && len(operands) == 2:
		return second("-w"), "'" + name + " path [watch]' has been deprecated. Please use '" + name + " [-w] path' instead."
	case name == "delete" && len(operands) == 2:
		return second("-v", words[operands[1]]), "'delete path [version]' has been deprecated. Please use 'delete [-v version] path' instead."
	}
	return words, ""
}

// longOptions are the options of ZooKeeper's CLI that have one hyphen and several letters.
var longOptions = map[string]string{
	"-add": "--add", "-remove": "--remove", "-members": "--members", "-file": "--file",
}

// zkOptions rewrites the long options of reconfig.
func zkOptions(words []string) []string {
	if words[0] != "reconfig" {
		return words
	}
	words = slices.Clone(words)
	for i, w := range words {
		if long, ok := longOptions[w]; ok {
			words[i] = long
		}
	}
	return words
}

// zkInvocation rewrites the options with which zkCli.sh is called, for the command shell.
func zkInvocation(args []string) []string {
	if len(args) == 0 || args[0] != "shell" {
		return zkOptionsOf(args)
	}
	out := []string{"shell"}
	for i := 1; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "-server", arg == "-client-configuration":
			out = append(out, "-"+arg)
		case arg == "-waitforconnection":
			out = append(out, "-"+arg)
			continue
		case arg == "-timeout" && i+1 < len(args):
			i++
			out = append(out, "--session-timeout", args[i]+"ms")
			continue
		case strings.HasPrefix(arg, "-"):
			out = append(out, arg)
			if strings.Contains(arg, "=") || !takesValue(arg) {
				continue
			}
		default: // the command, whose options are its own
			return append(out, args[i:]...)
		}
		if i++; i < len(args) {
			out = append(out, args[i])
		}
	}
	return out
}

func zkOptionsOf(args []string) []string {
	if len(args) == 0 {
		return args
	}
	return zkOptions(args)
}

// takesValue reports whether an option of the command shell has a value.
func takesValue(option string) bool {
	c := NewShell(nil)
	if name, long := strings.CutPrefix(option, "--"); long {
		f := c.Flags().Lookup(name)
		return f != nil && f.NoOptDefVal == ""
	}
	f := c.Flags().ShorthandLookup(option[len(option)-1:])
	return f != nil && f.NoOptDefVal == ""
}
