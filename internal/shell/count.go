package shell

import "fmt"

// Count is how many there are of something: no servers, 1 server, 2 servers.
func Count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
