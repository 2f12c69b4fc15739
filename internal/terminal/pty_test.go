package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

// TestMain lets the test binary be the program that runs in a pseudo-terminal.
func TestMain(m *testing.M) {
	switch os.Getenv("TERMINAL_TEST") {
	case "editor":
		os.Exit(editorProgram())
	case "screen":
		os.Exit(screenProgram())
	case "bar":
		os.Exit(barProgram())
	}
	os.Exit(m.Run())
}

// editorProgram prints each line that the editor returns. A line that begins with print is printed by another goroutine
// while the next one is read.
func editorProgram() int {
	h, err := OpenHistory(os.Getenv("HISTORY"), func(line string) bool { return strings.Contains(line, "secret") })
	if err != nil {
		fmt.Println(err)
		return 1
	}
	words := []Candidate{{Word: "alpha", About: "first"}, {Word: "alpine", About: "second"}, {Word: "beta"}, {Word: "/ä/one", More: true}, {Word: "/ä/two", More: true}}
	e := NewEditor(h, func(before string) (int, []Candidate) {
		from := strings.LastIndexByte(before, ' ') + 1
		var all []Candidate
		for _, w := range words {
			if strings.HasPrefix(w.Word, before[from:]) {
				all = append(all, w)
			}
		}
		return from, all
	}, func(line string) bool { _, err := Words(line); return errors.Is(err, ErrUnclosed) })
	for {
		line, err := e.Line(func() string { return "> " })
		switch {
		case errors.Is(err, ErrInterrupted):
			fmt.Println("interrupted")
			continue
		case errors.Is(err, io.EOF):
			fmt.Println("end")
			return 0
		case err != nil:
			fmt.Println(err)
			return 1
		}
		fmt.Printf("line %q\n", line)
		if text, ok := strings.CutPrefix(line, "print "); ok {
			go func() {
				<-time.After(100 * time.Millisecond) // the editor reads the next line by then
				e.Print(text + "\n")
			}()
		}
	}
}

// screenProgram shows its size and the last key until q.
func screenProgram() int {
	s, err := OpenScreen(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	last := byte('-')
	for last != 'q' {
		columns, rows := s.Size()
		s.Draw(fmt.Sprintf("%d columns, %d rows\nkey %c\n%s\n%s", columns, rows, last, strings.Repeat("wide", 100), strings.Repeat("more\n", 100)))
		select {
		case key, ok := <-s.Keys:
			if last = key; !ok {
				last = 'q'
			}
		case <-s.Resized:
		}
	}
	if err := s.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("closed")
	return 0
}

// barProgram draws a bar until a key is pressed.
func barProgram() int {
	b := NewBar(os.Stderr, "work")
	b.begun = b.begun.Add(-10 * time.Second)
	b.Set(42, 100)
	os.Stdin.Read(make([]byte, 1))
	b.Close()
	fmt.Println("done")
	return 0
}

// program is a test program in a pseudo-terminal, and the terminal's screen.
type program struct {
	t      *testing.T
	tty    *os.File
	mu     sync.Mutex
	screen vt10x.Terminal
	ended  chan error
}

// screenWait is how long a test waits until the screen shows something.
const screenWait = 30 * time.Second

func run(t *testing.T, name string, columns, rows int, env ...string) *program {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "TERMINAL_TEST="+name, "TERM=xterm", "INPUTRC="+os.DevNull, "HOME="+t.TempDir())...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)})
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, tty: tty, ended: make(chan error, 1)}
	p.screen = vt10x.New(vt10x.WithSize(columns, rows), vt10x.WithWriter(tty))
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			p.mu.Lock()
			p.screen.Write(buf[:n])
			p.mu.Unlock()
			if err != nil {
				p.ended <- cmd.Wait()
				return
			}
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		tty.Close()
	})
	return p
}

func (p *program) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for line := range strings.SplitSeq(p.screen.String(), "\n") {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

func (p *program) keys(text string) {
	p.t.Helper()
	if _, err := p.tty.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// shows waits until the screen contains a text.
func (p *program) shows(want string) {
	p.t.Helper()
	p.until("show "+want, func(text string) bool { return strings.Contains(text, want) })
}

func (p *program) until(what string, ok func(text string) bool) {
	p.t.Helper()
	for deadline := time.Now().Add(screenWait); !ok(p.text()); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("the screen does not %s:\n%s", what, p.text())
		}
	}
}

func (p *program) ends() {
	p.t.Helper()
	select {
	case err := <-p.ended:
		if err != nil {
			p.t.Fatalf("%v:\n%s", err, p.text())
		}
	case <-time.After(screenWait):
		p.t.Fatalf("the program does not end:\n%s", p.text())
	}
}

const (
	ctrlC, ctrlD, ctrlR = "\x03", "\x04", "\x12"
	up                  = "\x1b[A"
)

// TestEditorCompletes shows that TAB inserts what all candidates have in common and lists them, that a single
// one is inserted whole, also after characters that are not ASCII, and that nothing that is typed ahead is lost.
func TestEditorCompletes(t *testing.T) {
	p := run(t, "editor", 60, 12)
	p.shows(">")
	p.keys("al\t")
	p.shows("alpine  -- second")
	p.shows("> alp")
	p.keys("h\tx\r")
	p.shows(`line "alpha x"`)
	p.keys("/ä/t\t\r")
	p.shows(`line "/ä/two"`)
	p.keys("one\rtwo\rthree\r")
	p.shows(`line "three"`)
	p.shows(`line "two"`)
	p.keys(ctrlD)
	p.shows("end")
	p.ends()
}

// TestEditorCancels shows that Ctrl-C cancels a line, also while completions are listed, and does not end the program,
// and that a quotation continues on the next line.
func TestEditorCancels(t *testing.T) {
	p := run(t, "editor", 60, 12)
	p.shows(">")
	p.keys("never" + ctrlC)
	p.shows("interrupted")
	p.keys("al\t")
	p.shows("-- second")
	p.keys(ctrlC)
	p.until("show two interruptions", func(text string) bool { return strings.Count(text, "interrupted") == 2 })
	p.keys("al\t")
	p.shows("-- second")
	p.keys("\t" + ctrlC) // the second TAB chooses a completion from the list
	p.until("show three interruptions", func(text string) bool { return strings.Count(text, "interrupted") == 3 })
	p.keys("next\r")
	p.shows(`line "next"`)
	p.keys("'open\r")
	p.keys("closed'\r")
	p.shows(`line "'open\nclosed'"`)
	p.keys(ctrlD)
	p.ends()
}

// TestEditorDeletes shows that Ctrl-D and the key Delete remove the character under the cursor, and nothing at the end of a line.
func TestEditorDeletes(t *testing.T) {
	p := run(t, "editor", 60, 12)
	p.shows(">")
	p.keys("whole" + ctrlD + "\x1b[3~\r")
	p.shows(`line "whole"`)
	p.keys("xxpart\x01" + ctrlD + "\x1b[3~\r")
	p.shows(`line "part"`)
	p.keys(ctrlD)
	p.ends()
}

// TestEditorRecalls shows that lines are recalled with the arrow key and with Ctrl-R, also in a later run, and that private
// lines are not.
func TestEditorRecalls(t *testing.T) {
	history := "HISTORY=" + filepath.Join(t.TempDir(), "history")
	p := run(t, "editor", 60, 12, history)
	p.keys("first one\rsecond one\rmy secret\r")
	p.shows(`line "my secret"`)
	p.keys(up + "\r")
	p.until("recall the line before", func(text string) bool { return strings.Count(text, `line "second one"`) == 2 })
	p.keys(ctrlD)
	p.ends()
	p = run(t, "editor", 60, 12, history)
	p.shows(">")
	p.keys(ctrlR + "first")
	p.shows("first one")
	p.keys("\r")
	p.keys("\r")
	p.shows(`line "first one"`)
}

// TestEditorPrints shows that a text of another goroutine appears above the line that is being typed, and that the line
// stays.
func TestEditorPrints(t *testing.T) {
	p := run(t, "editor", 60, 12)
	p.keys("print an event\r")
	p.shows(`line "print an event"`)
	p.keys("half a ")
	p.shows("\nan event\n")
	p.keys("line\r")
	p.shows(`line "half a line"`)
}

// TestEditorAtTheBottom shows that long lines at the bottom of small terminals are drawn and returned whole, and that the lines
// above stay, also after the terminal is resized.
func TestEditorAtTheBottom(t *testing.T) {
	for _, columns := range []int{20, 40} {
		p := run(t, "editor", columns, 8)
		for i := range 8 {
			p.keys(fmt.Sprintf("l%d\r", i))
			p.shows(fmt.Sprintf(`line "l%d"`, i))
		}
		long := strings.Repeat("0123456789", 5)
		p.keys(long)
		p.shows("0123456789")
		p.shows(`line "l7"`)
		p.keys("\r")
		p.until("return the line", func(text string) bool {
			return strings.Contains(strings.ReplaceAll(text, "\n", ""), `line "`+long+`"`)
		})
		if err := pty.Setsize(p.tty, &pty.Winsize{Cols: 30, Rows: 8}); err != nil {
			t.Fatal(err)
		}
		p.keys("after\r")
		p.shows(`line "after"`)
		p.keys(ctrlD)
		p.ends()
	}
}

// TestScreen shows that a screen is drawn within its size, follows a new size, reads keys without Enter, and gives the
// terminal back.
func TestScreen(t *testing.T) {
	p := run(t, "screen", 20, 6)
	p.shows("20 columns, 6 rows")
	p.shows(strings.Repeat("wide", 5) + "\nmore")
	p.keys("x")
	p.shows("key x")
	p.mu.Lock()
	p.screen.Resize(200, 10)
	p.mu.Unlock()
	if err := pty.Setsize(p.tty, &pty.Winsize{Cols: 200, Rows: 10}); err != nil {
		t.Fatal(err)
	}
	p.shows("200 columns, 10 rows")
	p.keys("q")
	p.shows("closed")
	p.ends()
}

// TestBar shows that a bar is drawn at a terminal and removed, and nowhere else.
func TestBar(t *testing.T) {
	p := run(t, "bar", 60, 4)
	p.shows("work 42%  42 of 100  14s left  [")
	p.keys(ctrlD)
	p.shows("done")
	if strings.Contains(p.text(), "work") {
		t.Errorf("the bar stays:\n%s", p.text())
	}
	p = run(t, "bar", 12, 4)
	p.shows("work 42%")

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := NewBar(w, "work")
	b.begun = b.begun.Add(-time.Minute)
	b.Set(1, 2)
	b.Close()
	w.Close()
	if text, err := io.ReadAll(r); err != nil || len(text) > 0 {
		t.Errorf("%q, %v", text, err)
	}
	var none *Bar
	none.Set(1, 2)
	none.Close()
}
