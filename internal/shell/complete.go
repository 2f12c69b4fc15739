package shell

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bellwether/internal/fourletter"
	"bellwether/internal/terminal"
)

const (
	// completeWait is how long a completion waits for the server.
	completeWait = time.Second
	// completeMax is how many paths a completion offers.
	completeMax = 2000
)

// complete returns the candidates for the word at the end of a text, and where that word begins.
func (s *session) complete(before string) (from int, all []terminal.Candidate) {
	words, from := wordsBefore(before)
	word := before[from:]
	tree := s.tree()
	switch {
	case len(words) == 0:
		return from, subcommands(tree, word)
	case words[0] == "help":
		c, _, err := tree.Find(words[1:])
		if err != nil {
			return from, nil
		}
		return from, subcommands(c, word)
	}
	c, _, err := tree.Find(words)
	if err != nil || c == tree {
		return from, nil
	}
	switch values := optionValues(words[len(words)-1], c); {
	case c.HasSubCommands():
		all = subcommands(c, word)
	case values != nil:
		all = plain(values, word)
	case strings.HasPrefix(word, "-"):
		all = options(c, word)
	case len(c.ValidArgs) > 0:
		all = plain(c.ValidArgs, word)
	case strings.HasPrefix(word, "/") || word == "" && strings.Contains(c.Use, "PATH"):
		all = s.paths(word)
	}
	return from, all
}

// wordsBefore splits a text into its finished words and the beginning of the last one.
func wordsBefore(before string) (words []string, from int) {
	from = strings.LastIndexAny(before, " \t\n") + 1
	if quote := strings.LastIndexAny(before, `"'`); quote > 0 && quote+1 > from {
		from = quote + 1
	}
	words, err := terminal.Words(strings.TrimRight(before[:from], `"'`))
	if err != nil {
		return []string{""}, from // in a quotation
	}
	return words, from
}

func subcommands(c *cobra.Command, word string) (all []terminal.Candidate) {
	for _, sub := range c.Commands() {
		if strings.HasPrefix(sub.Name(), word) && !sub.Hidden {
			all = append(all, terminal.Candidate{Word: sub.Name(), About: sub.Short})
		}
	}
	return all
}

func plain[T ~string](values []T, word string) (all []terminal.Candidate) {
	for _, v := range values {
		if strings.HasPrefix(string(v), word) {
			all = append(all, terminal.Candidate{Word: string(v)})
		}
	}
	return all
}

// optionValues returns the values of the option that is the last word.
func optionValues(last string, c *cobra.Command) []string {
	switch {
	case last == "-o" || last == "--output":
		return []string{"text", "json"}
	case c.Name() == "addWatch" && (last == "-m" || last == "--mode"):
		return []string{"PERSISTENT", "PERSISTENT_RECURSIVE"}
	}
	return nil
}

// options returns the options of a command: the short name if there is one, as in ZooKeeper's CLI.
func options(c *cobra.Command, word string) (all []terminal.Candidate) {
	c.InitDefaultHelpFlag()
	c.Flags().VisitAll(func(f *pflag.Flag) {
		for _, name := range []string{"-" + f.Shorthand, "--" + f.Name} {
			if name == "-" || f.Hidden || !strings.HasPrefix(name, word) {
				continue
			}
			all = append(all, terminal.Candidate{Word: name, About: f.Usage})
			return
		}
	})
	return all
}

// paths returns the znodes whose paths begin with a word.
func (s *session) paths(word string) (all []terminal.Candidate) {
	if word == "" {
		return []terminal.Candidate{{Word: "/", More: true}}
	}
	if s.client == nil {
		return nil
	}
	slash := strings.LastIndexByte(word, '/')
	parent := max(word[:slash], "/")
	ctx, stop := context.WithTimeout(context.Background(), completeWait)
	defer stop()
	names, _, err := s.client.Children(ctx, parent)
	if err != nil {
		return nil
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, word[slash+1:]) })
	slices.Sort(names)
	common := commonPrefix(names)
	if len(names) > completeMax {
		if len(common) > len(word)-slash-1 { // no candidate is left out: the word grows to what is common
			return []terminal.Candidate{{Word: join(parent, common), More: true}}
		}
		names = names[:completeMax]
	}
	for _, n := range names {
		all = append(all, terminal.Candidate{Word: join(parent, n), Shown: fourletter.Clean(n), More: true})
	}
	return all
}

// commonPrefix returns the longest text with which all sorted names begin.
func commonPrefix(names []string) string {
	if len(names) == 0 {
		return ""
	}
	first, last := names[0], names[len(names)-1]
	n := 0
	for n < min(len(first), len(last)) && first[n] == last[n] {
		n++
	}
	return strings.ToValidUTF8(first[:n], "")
}
