// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command site renders the repository's pages as a folder of HTML files with a search. A browser
// can open the files from disk, without a server or a network.
//
//	site VERSION REPOSITORY FOLDER
//
// VERSION is the version shown on each page. The site contains README.md and every page that links
// lead to from there.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: site VERSION REPOSITORY FOLDER")
		os.Exit(1)
	}
	pages, err := load(os.DirFS(os.Args[2]))
	if err == nil {
		err = write(pages, os.DirFS(os.Args[2]), os.Args[1], os.Args[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages: open %s/README.html\n", len(pages), os.Args[3])
}
