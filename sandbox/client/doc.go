// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client runs sandboxes from Go, for the tests of an operator or for a program that needs a
// control plane temporarily. The package is a separate module that requires only the standard
// library, so it can be imported next to any version of client-go. It runs on Linux, as sandboxes
// do, and compiles on macOS, where Up returns an error that wraps errors.ErrUnsupported.
//
//	func TestShop(t *testing.T) {
//		s := client.Shared(t, client.Options{Nodes: 3, Install: client.Install{Paths: []string{"config/crd"}}})
//		namespace := s.Namespace(t)
//		config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
//
// Outside of tests, a program calls Up and Down.
//
// The files:
//
//	testing.go   a sandbox for a test or for all tests of a package, and its cleanup
//	sandbox.go   start a sandbox or attach to a running sandbox; run its commands and kubectl
//	options.go   options for starting a sandbox
//	install.go   install CustomResourceDefinitions and other manifests
//	webhooks.go  an address and a certificate for a webhook server
//	build.go     build the sandbox program if it is not installed
//	status.go    the status of a sandbox and its components
//	wait.go      wait until a condition holds
//	snapshot.go  save and restore all objects; wait until nothing is written
//	process.go   run a program against a sandbox: its output, signals and exit
//	address.go   a free port for the program, reserved until it is released
//	other.go     the equivalent of address.go on systems other than Linux, which returns an error
//	proxy.go     start the fault proxy and control it while it runs
//	log.go       read the fault proxy's log
//	console      run the commands in a page in a shell, and compare their output with the page
//	child        start a command that is killed when the process that started it exits
package client
