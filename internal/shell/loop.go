package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"bellwether/internal/terminal"
)

// scriptLineMax is the longest command of a script, in bytes. It has room for the largest data that servers
// accept by default, in base64.
const scriptLineMax = 4 << 20

// lineReader reads the lines of a shell: an editor or a script. Its error is io.EOF at the end.
type lineReader interface {
	Line(prompt func() string) (string, error)
}

// script reads the lines of a file or a pipe.
type script struct{ in *bufio.Reader }

// Line returns the next line. A quotation that is not closed continues on the next line.
func (s *script) Line(func() string) (string, error) {
	command := ""
	for {
		line, err := s.in.ReadString('\n')
		command += line
		switch {
		case len(command) > scriptLineMax:
			return "", fmt.Errorf("a command is longer than %d bytes", scriptLineMax)
		case err != nil && command == "":
			return "", err
		case err != nil || !unfinished(command):
			return strings.TrimRight(command, "\r\n"), nil
		}
	}
}

// unfinished reports whether a command continues on the next line.
func unfinished(line string) bool {
	_, err := terminal.Words(line)
	return errors.Is(err, terminal.ErrUnclosed) && !isComment(line)
}

// isComment reports whether a line is a comment.
func isComment(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "#") }

// errQuit ends the shell.
var errQuit = errors.New("quit")

// run executes lines until the end of the input or quit. It returns the status of the first
// command of a script that failed; with stop it ends there.
func (s *session) run(ctx context.Context, in lineReader, stop bool) error {
	for {
		deaf := s.events.listen()
		line, err := in.Line(s.prompt)
		deaf()
		switch {
		case errors.Is(err, terminal.ErrInterrupted):
			continue
		case errors.Is(err, io.EOF):
			return s.outcome()
		case err != nil:
			return err
		}
		err = s.interruptible(ctx, line)
		if errors.Is(err, errQuit) {
			return s.outcome()
		}
		s.report(err)
		if s.events.drain(); s.failed != nil && stop {
			return s.outcome()
		}
	}
}

// outcome returns the status of the first command that failed. Its message has been printed.
func (s *session) outcome() error {
	if s.failed == nil {
		return nil
	}
	return &StatusError{Status: s.failed.Status}
}

// report prints the error of a command. In a script it remembers the first one for the exit status; at a
// terminal it remembers none, because the user has seen them.
func (s *session) report(err error) {
	if err == nil {
		return
	}
	var status *StatusError
	if !errors.As(err, &status) {
		status = &StatusError{ExitFailed, err}
	}
	if status.Err != nil {
		fmt.Fprintln(s.err, status.Err)
	}
	if s.failed == nil && s.editor == nil {
		s.failed = status
	}
}

// interruptible executes a line. In an interactive shell Ctrl-C ends the command, not the shell.
func (s *session) interruptible(ctx context.Context, line string) error {
	if s.editor == nil {
		return s.execute(ctx, line)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	err := s.execute(ctx, line)
	if err != nil && ctx.Err() != nil {
		return &StatusError{Status: exitInterrupted, Err: errors.New("interrupted")}
	}
	return err
}

// exitInterrupted is the status of a command that Ctrl-C has ended, as in shells.
const exitInterrupted = 130

// execute runs one command line.
func (s *session) execute(ctx context.Context, line string) error {
	if strings.TrimSpace(line) == "" || isComment(line) {
		return nil
	}
	if !s.redone {
		s.lines = append(s.lines, withoutSecrets(line))
	}
	words, err := terminal.Words(line)
	if err != nil {
		return Usage(err)
	}
	return s.command(ctx, words)
}

// command runs a command that was split into words. Each command gets a new tree, because a tree
// keeps the values of flags.
func (s *session) command(ctx context.Context, words []string) error {
	words, notice := modern(words)
	if notice != "" {
		fmt.Fprintln(s.err, notice)
	}
	tree := s.tree()
	if !known(tree, words[0]) {
		return s.unknown(tree, words[0])
	}
	tree.SetArgs(zkOptions(words))
	tree.SetOut(s.out)
	tree.SetErr(s.err)
	giveStatus(tree)
	cmd, err := tree.ExecuteContextC(ctx)
	var status *StatusError
	if err == nil || errors.Is(err, errQuit) || errors.As(err, &status) {
		return err
	}
	return Usage(fmt.Errorf("%w; see help %s", flagError(err), strings.TrimSpace(cmd.CommandPath())))
}

// known reports whether the shell has a command.
func known(tree *cobra.Command, name string) bool {
	for _, c := range tree.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return true
		}
	}
	return false
}

// exitUnknown is the status for a command that does not exist, as in ZooKeeper's CLI and in shells.
const exitUnknown = 127

func (s *session) unknown(tree *cobra.Command, name string) error {
	text := fmt.Sprintf("Command not found: %s", printable(name))
	tree.SuggestionsMinimumDistance = 2
	if near := tree.SuggestionsFor(name); len(near) > 0 {
		text += ", did you mean " + near[0] + "?"
	} else {
		text += "; help lists the commands"
	}
	return &StatusError{exitUnknown, errors.New(text)}
}

// narrow is the number of columns below which the prompt is short.
const narrow = 60

// prompt returns the prompt of ZooKeeper's CLI: the servers, the state and the number of the
// command.
func (s *session) prompt() string {
	state := "CLOSED"
	if s.client != nil {
		state = stateShown[s.client.State().State]
	}
	if columns, _ := terminal.Size(os.Stdout); columns < narrow {
		mark := ""
		if state != "CONNECTED" {
			mark = "!"
		}
		return fmt.Sprintf("zk%s %d> ", mark, len(s.lines))
	}
	return fmt.Sprintf("[zk: %s(%s) %d] ", s.servers, state, len(s.lines))
}
