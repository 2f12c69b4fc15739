module bellwether/interop

go 1.26.0

require (
	bellwether v0.0.0
	github.com/anishathalye/porcupine v1.3.1
	github.com/go-zookeeper/zk v1.0.4
	golang.org/x/sys v0.48.0
)

replace bellwether => ../
