// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release packs what make release has built into one folder, the same to the last byte
// each time: archives with licences, a list of the modules in each binary, the image as an OCI
// layout, the chart, a manifest for krew, notes, checksums, and with a key a signature of them.
//
// The files:
//
//	main.go      the command line, and the order in which the folder is made
//	archive.go   archives with fixed times and owners
//	modules.go   the modules of a binary, and their licences
//	sbom.go      the list of the modules, as CycloneDX
//	image.go     the image for all architectures, as an OCI layout
//	chart.go     the chart, which names the image by its digest
//	krew.go      the manifest for krew
//	notes.go     the notes of a release, from the changelog
//	sign.go      checksums, and their signature by a key
package main
