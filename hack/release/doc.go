// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release packs the binaries that make release has built into a folder, reproducibly to the
// last byte. The folder contains archives with licences, a list of the modules in each binary,
// packages, the image as an OCI layout, the chart and install.yaml, the Go module, notes,
// provenance, checksums and, if there is a key, signatures. "release push" pushes the image and the
// chart from such a folder.
//
// The command is in a separate module, so that its dependencies do not become Tidekeeper's.
//
// The files:
//
//	main.go         the command line, and the order in which the files are created
//	check.go        rejects invalid inputs before anything is built
//	archive.go      archives with fixed times and owners
//	demo.go         the programs in each archive, including the demo
//	modules.go      the modules linked into a binary, and their licences
//	sbom.go         the list of a binary's modules, as CycloneDX
//	packages.go     the plugin's deb and rpm packages
//	image.go        the image for all architectures, as an OCI layout
//	chart.go        the chart, which names the image by its digest
//	install.go      install.yaml, built from config/default
//	krew.go         the manifest for krew
//	brew.go         the formula for Homebrew
//	proxy.go        the Go module in the form that go install reads from a proxy
//	notes.go        the release notes, from the changelog
//	pages.go        the pages in archives and in the folder, without relative links
//	provenance.go   the build's commit and parameters
//	vex.go          whether the code reaches the vulnerabilities in govulncheck's findings
//	sign.go         checksums, and signatures with a key
//	push.go         pushes the image, the chart and their signatures
package main
