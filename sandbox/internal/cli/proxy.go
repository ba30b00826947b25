// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/proxy"
)

// proxyFlags holds the values of the flags of `sandbox proxy`.
type proxyFlags struct {
	kubeconfig, write, scenario, log, listen, control string
}

func newProxy(s *target) *cobra.Command {
	var f proxyFlags
	cmd := &cobra.Command{
		Use:   "proxy --write-kubeconfig FILE [-- PROGRAM [ARGUMENTS...]]",
		Short: "Inject faults between an operator and an API server",
		Long: `Inject faults between an operator and an API server.

Start the operator with the kubeconfig that the proxy writes. Its requests reach
the API server as the user of the kubeconfig that the proxy was given, those with
a bearer token as the token's user. Without a scenario, everything is passed on
unchanged; with --control, rules can be added at any time through the proxy's own
API, on a socket that only you can write to. Each request is a line of JSON in
the log.

A program after -- is started with that kubeconfig as its KUBECONFIG, and ends with
the proxy. Rules can crash it; if it ends by itself, so does the proxy.`,
		Example: `  # In front of the sandbox, or of any cluster.
  sandbox proxy --write-kubeconfig ./proxied
  sandbox proxy --kubeconfig ~/.kube/config --write-kubeconfig ./proxied --scenario bad-day.yaml

  # An operator that rules can crash.
  sandbox proxy --write-kubeconfig ./proxied --scenario crash.yaml --log proxy.log -- ./my-operator

  # The third patch of a node is committed, and its answer is lost.
  rules:
  - match: {verbs: [patch], resources: [nodes]}
    count: {from: 3, times: 1}
    fault: {kind: LoseAnswer}`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() == 0 {
				return nil
			}
			return arguments()(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, s, args) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "the proxy's kubeconfig for the API server (default that of the sandbox's administrator)")
	flags.StringVar(&f.write, "write-kubeconfig", "", "the file to write the kubeconfig for the clients of the proxy to (required)")
	flags.StringVar(&f.scenario, "scenario", "", "a file with the rules to begin with")
	flags.StringVar(&f.log, "log", "", "the file to write the log to (default standard output)")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "the address for clients; port 0 picks a free port")
	flags.StringVar(&f.control, "control", "", "the file to make the socket of the proxy's own API at, which only you can write to (default none)")
	return cmd
}

// run runs the fault proxy. If there are arguments, they are the command line of a program that it
// also runs.
func (f proxyFlags) run(cmd *cobra.Command, s *target, arguments []string) error {
	o, err := f.options(s.dir)
	if err != nil {
		return err
	}
	var crashing *program
	if len(arguments) > 0 {
		if crashing, err = f.program(arguments); err != nil {
			return err
		}
		o.Crash = crashing.crash
	}
	log, err := openLog(cmd, f.log)
	if err != nil {
		return err
	}
	defer log.Close()
	o.Log = log
	server, err := proxy.Start(o)
	if err != nil {
		return err
	}
	if err := cluster.WriteKubeconfig(f.write, server.Kubeconfig); err != nil {
		return errors.Join(err, server.Close())
	}
	// Print to standard error, because the log may be written to standard output.
	fmt.Fprintf(cmd.ErrOrStderr(), `The proxy is ready, rules in force: %d.
  in front of  %s
  listens on   %s
  control      %s
  kubeconfig   %s
`, len(o.Rules), o.Upstream.Host, server.URL, cmp.Or(f.control, "none: --control FILE makes it"), f.write)
	for _, warning := range server.Warnings(o.Rules) {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", warning)
	}
	if crashing == nil {
		err = server.Run(cmd.Context())
	} else {
		err = runWith(cmd.Context(), server, crashing)
	}
	// Warn about rules that have injected no fault. A test of a fault that was never injected
	// passes without having tested anything.
	rules, _ := server.Rules().List()
	for i := range rules {
		if why := rules[i].Unfired(); why != "" {
			fmt.Fprintln(cmd.ErrOrStderr(), "warning:", why)
		}
	}
	return err
}

// program returns the program that the fault proxy starts, with the proxy's kubeconfig in its
// environment.
func (f proxyFlags) program(arguments []string) (*program, error) {
	if f.log == "" {
		return nil, errors.New("--log is missing: standard output is that of the program, so name the file for the log")
	}
	if _, err := exec.LookPath(arguments[0]); err != nil {
		return nil, fmt.Errorf("the program: %w", err)
	}
	kubeconfig, err := filepath.Abs(f.write)
	if err != nil {
		return nil, err
	}
	return newProgram(arguments, []string{"KUBECONFIG=" + kubeconfig}), nil
}

// runWith runs the program and the fault proxy until the program exits by itself or the context is
// done. It returns the program's exit code as an error if the code is not 0.
func runWith(ctx context.Context, server *proxy.Server, program *program) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if err := program.start(); err != nil {
		return errors.Join(err, server.Close())
	}
	defer program.close()
	go func() {
		select {
		case code := <-program.over:
			end(exitError(code))
		case <-ctx.Done():
		}
	}()
	err := server.Run(ctx)
	if code := exitError(0); errors.As(context.Cause(ctx), &code) && code != 0 {
		return code
	}
	return err
}

// options validates the flags, reads the files that they name, and converts them to options. The
// function "sandbox" returns the data directory of a sandbox. That sandbox's kubeconfig is used if
// --kubeconfig is not set.
func (f proxyFlags) options(sandbox func() (cluster.Dir, error)) (proxy.Options, error) {
	o := proxy.Options{Listen: f.listen, Control: f.control}
	if f.write == "" {
		return o, errors.New("--write-kubeconfig is missing: name the file that the operator will be started with")
	}
	if err := cluster.MayOverwrite(f.write, proxy.ContextName, fmt.Errorf(
		"%s exists and is not the kubeconfig of a proxy: give another --write-kubeconfig, or remove it first", f.write)); err != nil {
		return o, err
	}
	if err := checkAddresses(f); err != nil {
		return o, err
	}
	if f.scenario != "" {
		text, err := os.ReadFile(f.scenario)
		if err != nil {
			return o, fmt.Errorf("--scenario: %w", err)
		}
		if o.Rules, err = fault.Parse(text); err != nil {
			return o, fmt.Errorf("--scenario %s: %w", f.scenario, err)
		}
	}
	if f.kubeconfig == "" {
		dir, err := sandbox()
		if err != nil {
			return o, err
		}
		f.kubeconfig = dir.Kubeconfig()
		if o.Upstream, err = dir.RESTConfig(); err != nil {
			return o, err
		}
	}
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: f.kubeconfig}, nil)
	var err error
	if o.Upstream, err = config.ClientConfig(); err != nil {
		return o, fmt.Errorf("--kubeconfig: %w", err)
	}
	o.Namespace, _, err = config.Namespace()
	return o, err
}

// longestSocket is the maximum length of a Unix socket's path, in bytes.
const longestSocket = 107

// checkAddresses rejects a --control address that other local users could connect to, and a
// --listen address that clients cannot use.
func checkAddresses(f proxyFlags) error {
	if _, port, err := net.SplitHostPort(f.control); err == nil {
		if _, err := strconv.Atoi(port); err == nil {
			return fmt.Errorf("--control %q: want the file of a socket, such as ./control: every user of this machine could reach an address", f.control)
		}
	}
	if len(f.control) > longestSocket {
		return fmt.Errorf("--control %q: the path of a socket has at most %d bytes", f.control, longestSocket)
	}
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return fmt.Errorf("--listen %q: want an address like 127.0.0.1:8001", f.listen)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("--listen %q: name the address that clients are to use", f.listen)
	}
	return nil
}

// openLog opens the log file. If its name is empty, the log is written to standard output without
// delaying requests if the reader of standard output is slow. Closing the log does not close
// standard output.
func openLog(cmd *cobra.Command, file string) (io.WriteCloser, error) {
	if file == "" {
		return proxy.NewBacklog(cmd.OutOrStdout()), nil
	}
	log, err := os.Create(filepath.Clean(file))
	if err != nil {
		return nil, fmt.Errorf("--log: %w", err)
	}
	return log, nil
}
