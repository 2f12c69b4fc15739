package terminal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

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
	e.rl.SyntaxHighlighter = func(line []rune) string { return e.room(string(line)) + string(line) }
	// The library would ask the terminal for the cursor's position with every key, and lose keys that arrive together
	// with the answer. It needs the position only to make room, which room does.
	e.rl.Config.Vars["cursor-position-probe"] = false
	for _, name := range []string{"input-meta", "output-meta", "menu-complete-display-prefix"} {
		e.rl.Config.Vars[name] = true
	}
	e.rl.Config.Vars["convert-meta"] = false // keys may be UTF-8
	e.rl.Config.Vars["usage-hint-always"] = false
	e.rl.Keymap.Register(map[string]func(){"print-pending": e.printPending, "cancel-line": e.cancel, "delete-char": e.deleteChar, "end-of-file": e.endOrDelete})
	for _, keys := range []string{"emacs", "emacs-standard", "vi-insert", "vi-command", "menu-select"} {
		if binds := e.rl.Config.Binds[keys]; binds != nil {
			binds[string(printKey)] = inputrc.Bind{Action: "print-pending"}
			binds[string(cancelKey)] = inputrc.Bind{Action: "cancel-line"}
		}
	}
	for _, keys := range []string{"emacs", "emacs-standard", "vi-insert"} {
		if binds := e.rl.Config.Binds[keys]; binds != nil && binds[deleteKey].Action == "" {
			binds[deleteKey] = inputrc.Bind{Action: "delete-char"}
		}
	}
	return e
}

const (
	cancelKey = '\x03'    // Ctrl-C
	deleteKey = "\x1b[3~" // the key Delete
)

// cancel cancels the line, also if completions are shown.
func (e *Editor) cancel() {
	e.rl.Display.ResetHelpers()
	e.rl.Display.AcceptLine()
	e.rl.History.Accept(false, false, readline.ErrInterrupt)
}

// deleteChar deletes the character under the cursor. At the end of the line there is none: the library would delete the
// last character, which GNU Readline does not do.
func (e *Editor) deleteChar() {
	if at := e.rl.Cursor().Pos(); at < e.rl.Line().Len() {
		e.rl.History.Save()
		e.rl.Line().CutRune(at)
	}
}

// endOrDelete ends the input if the line is empty; otherwise it does what deleteChar does.
func (e *Editor) endOrDelete() {
	if e.rl.Line().Len() > 0 {
		e.deleteChar()
		return
	}
	e.rl.Display.AcceptLine()
	e.rl.History.Accept(false, false, io.EOF)
}

// room returns the control sequence that makes room below a line that is being drawn: at the bottom of the
// screen it scrolls. The library needs one row more than the line has.
func (e *Editor) room(line string) string {
	columns, _ := Size(os.Stdout)
	if columns == 0 {
		return ""
	}
	prompt, rows := width(e.prompt()), 1
	for part := range strings.SplitSeq(line, "\n") {
		rows += (prompt+width(part))/columns + 1
	}
	return strings.Repeat("\x1bD", rows) + fmt.Sprintf("\x1b[%dA", rows)
}

// width returns how many columns a text needs at most.
func width(text string) int {
	n := 0
	for _, r := range text {
		if n++; r >= firstWide {
			n++
		}
	}
	return n
}

// firstWide is the first character that may need two columns.
const firstWide = 0x1100

func completions(word string, all []Candidate) readline.Completions {
	// The library counts the bytes of the word as columns, so it gets only what follows the last character that is not ASCII.
	ascii := strings.LastIndexFunc(word, func(r rune) bool { return r >= utf8.RuneSelf })
	if ascii >= 0 {
		_, size := utf8.DecodeRuneInString(word[ascii:])
		ascii += size
	}
	cut := max(ascii, 0)
	if cut > 0 && cut == len(word) {
		return readline.Completions{}
	}
	values := make([]readline.Completion, 0, len(all))
	some := fitting(all)
	for _, c := range some {
		value, shown := c.Word[cut:], c.Shown
		if shown == "" {
			shown = c.Word
		}
		if len(all) == 1 && !c.More {
			value += " "
		}
		values = append(values, readline.Completion{Value: value, Display: shown, Description: c.About})
	}
	out := readline.CompleteRaw(values)
	out.PREFIX = word[cut:]
	if len(some) < len(all) {
		out = out.Usage("%d of %d are listed", len(some), len(all))
	}
	return out
}

// fitting returns as many candidates as the screen has room for. The last one is always among them, so that what all have in
// common stays the same; … before it stands for those that are left out.
func fitting(all []Candidate) []Candidate {
	columns, rows := Size(os.Stdout)
	if rows == 0 || len(all) == 0 {
		return all
	}
	widest, described := 0, false
	for _, c := range all {
		widest = max(widest, width(c.Shown), width(c.Word))
		described = described || c.About != ""
	}
	most := max(2, rows/2)
	if !described {
		most *= max(1, columns/(widest+2))
	}
	if len(all) <= most {
		return all
	}
	last := all[len(all)-1]
	last.Shown = "… " + cmp.Or(last.Shown, last.Word)
	return append(slices.Clone(all[:most-1]), last)
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

// printPending prints the texts that Print has queued. It runs on the goroutine of Line.
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
