package shell

import "fmt"

// Count returns a number with a noun: no servers, 1 server, 2 servers.
func Count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
