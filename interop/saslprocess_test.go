package interop

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"bellwether/internal/sasl"
)

// acceptProcess plays the server's end of an exchange for a program that writes and reads tokens as
// lines of base64. A program that verifies the server's last token writes one line more.
func acceptProcess(t *testing.T, a sasl.Acceptor, args ...string) error {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		token, err := base64.StdEncoding.DecodeString(lines.Text())
		if err != nil {
			return fmt.Errorf("%s: %w", lines.Text(), err)
		}
		answer, done, err := a.Step(token)
		if err != nil || done && answer == nil {
			return err
		}
		if _, err := io.WriteString(in, base64.StdEncoding.EncodeToString(answer)+"\n"); err != nil {
			return err
		}
		if done {
			if !lines.Scan() || lines.Text() != "complete" {
				return errors.New("the program does not accept the proof of the server")
			}
			return nil
		}
	}
	return errors.New("the program ended before the exchange did")
}
