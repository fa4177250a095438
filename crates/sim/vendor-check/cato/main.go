// Checks the simulator with the vendor's own client.
//
//	cato walk URL                    creates, reads, updates and deletes one object of every kind, twice over
//	cato schema OURS THEIRS          compares the simulator's schema with the vendor's
package main

import (
	"fmt"
	"os"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "walk":
		err = walk(os.Args[2])
	case len(os.Args) == 4 && os.Args[1] == "schema":
		err = compareSchemas(os.Args[2], os.Args[3])
	default:
		err = fmt.Errorf("usage: cato walk URL | cato schema OURS THEIRS")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
