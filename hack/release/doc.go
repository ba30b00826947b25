// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release packs what make release has built into one folder, the same to the last byte
// each time: archives with licences, a list of the modules in each binary, packages, the image as an
// OCI layout, what installs it, the module for Go, notes, provenance, checksums, and with a key
// signatures. "release push" pushes the image and the chart of such a folder.
//
// It is a module of its own, so that what it needs does not become what Tidekeeper needs.
//
// The files:
//
//	main.go         the command line, and the order in which the folder is made
//	check.go        wrong inputs, before anything is built
//	archive.go      archives with fixed times and owners
//	demo.go         the programs of an archive, also of that with the demo
//	modules.go      the modules of a binary, and their licences
//	sbom.go         the list of the modules, as CycloneDX
//	packages.go     packages of the plugin for Debian and RPM
//	image.go        the image for all architectures, as an OCI layout
//	chart.go        the chart, which names the image by its digest
//	install.go      install.yaml, of config/default
//	krew.go         the manifest for krew
//	brew.go         the formula for Homebrew
//	proxy.go        the module as go install reads it from a proxy
//	notes.go        the notes of a release, from the changelog
//	provenance.go   from which commit and how the files were made
//	vex.go          whether vulnerabilities that govulncheck found are reached
//	sign.go         checksums, and signatures by a key
//	push.go         pushes the image, the chart and their signatures
package main
