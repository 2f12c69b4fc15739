package shell

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Agreed asks a question, and reports whether the answer is yes. At the end of the input the answer is no. The line
// of the question is ended then, so that an error begins a line of its own.
func Agreed(in io.Reader, out io.Writer, question string) bool {
	fmt.Fprint(out, question+" [y/N] ")
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		fmt.Fprintln(out)
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
