package terminal

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/reeflective/readline"
	"github.com/reeflective/readline/inputrc"
	"golang.org/x/sys/unix"
)

// ErrInterrupted is the error of Editor.Line when the user has cancelled the line with Ctrl-C.
var ErrInterrupted = errors.New("interrupted")

// Candidate is a word that completes the word before the cursor.
type Candidate struct {
	Word  string // the whole word
	Shown string // what the list shows; empty: Word
	About string
	More  bool // the word may continue, so no blank follows it
}

// Editor reads lines at a terminal, with the keys of GNU Readline and the user's inputrc.
type Editor struct {
	rl     *readline.Shell
	prompt func() string

	mu      sync.Mutex
	reading bool     // Line is waiting for keys
	pending []string // texts that Print got meanwhile
}

// printKey is the key that makes the editor print pending texts. Print feeds it, so that only the goroutine of
// Line writes to the terminal. It is Ctrl-^, which Readline does not use.
const printKey = '\x1e'

// NewEditor returns an editor of the process's standard input and output. complete returns the
// candidates for the word that begins at a byte offset of the text before the cursor. unfinished reports
// whether a line continues on the next one.
func NewEditor(h *History, complete func(before string) (from int, all []Candidate), unfinished func(line string) bool) *Editor {
	e := &Editor{rl: readline.NewShell(inputrc.WithApp("bellwether"))}
	e.rl.History.Delete()
	e.rl.History.Add("history", h)
	e.rl.Prompt.Primary(func() string { return e.prompt() })
	e.rl.Prompt.Secondary(func() string { return "> " })
	e.rl.AcceptMultiline = func(line []rune) bool { return !unfinished(string(line)) }
	e.rl.Completer = func(line []rune, cursor int) readline.Completions {
		before := string(line[:min(cursor, len(line))])
		from, all := complete(before)
		return completions(before[from:], all)
	}
	e.rl.Config.Vars["menu-complete-display-prefix"] = true
	e.rl.Config.Vars["usage-hint-always"] = false
	e.rl.Keymap.Register(map[string]func(){"print-pending": e.printPending})
	for _, keys := range []string{"emacs", "emacs-standard", "vi-insert", "vi-command"} {
		if binds := e.rl.Config.Binds[keys]; binds != nil {
			binds[string(printKey)] = inputrc.Bind{Action: "print-pending"}
		}
	}
	return e
}

func completions(word string, all []Candidate) readline.Completions {
	values := make([]readline.Completion, len(all))
	more := false
	for i, c := range all {
		shown := c.Shown
		if shown == "" {
			shown = c.Word
		}
		values[i] = readline.Completion{Value: c.Word, Display: shown, Description: c.About}
		more = more || c.More
	}
	out := readline.CompleteRaw(values)
	out.PREFIX = word
	if more {
		out = out.NoSpace()
	}
	return out
}

// Line shows a prompt and returns the line that the user has typed. Its error is io.EOF at
// Ctrl-D, or ErrInterrupted. prompt is called again whenever the line is drawn.
func (e *Editor) Line(prompt func() string) (string, error) {
	e.mu.Lock()
	e.prompt, e.reading = prompt, true
	e.mu.Unlock()
	line, err := e.rl.Readline()
	e.mu.Lock()
	e.reading = false
	pending := e.pending
	e.pending = nil
	e.mu.Unlock()
	for _, text := range pending {
		if _, err := io.WriteString(os.Stdout, text); err != nil {
			return "", err
		}
	}
	switch {
	case errors.Is(err, readline.ErrInterrupt):
		return "", ErrInterrupted
	case err != nil && !errors.Is(err, io.EOF) && errors.Is(err, unix.EIO):
		return "", io.EOF // the terminal is gone
	}
	return line, err
}

// Print prints a text, which ends with a line end, above the line that is being typed. Any goroutine may call it.
func (e *Editor) Print(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.reading {
		io.WriteString(os.Stdout, text) // a terminal that is gone ends Line
		return
	}
	e.pending = append(e.pending, text)
	e.rl.Keys.Feed(false, printKey)
	e.rl.Keys.RequestRefresh()
}

// printPending runs on the goroutine of Line.
func (e *Editor) printPending() {
	e.mu.Lock()
	text := strings.Join(e.pending, "")
	e.pending = nil
	e.mu.Unlock()
	e.rl.History.SkipSave()
	if text != "" {
		e.rl.PrintTransientf("%s", strings.TrimSuffix(text, "\n"))
	}
}
