// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"tidekeeper.dev/tidekeeper/internal/text"
)

const (
	logFormatJSON = "json"
	logFormatText = "text"
)

// Names of the log levels, in flags and in the log. logr's verbosity V(n) is the slog level -n.
const (
	logLevelError = "error"
	logLevelInfo  = "info"
	logLevelDebug = "debug"
	logLevelTrace = "trace"

	// logLevelMost is the highest verbosity, at which client-go writes most messages.
	logLevelMost = 9
)

// logValueLimit is the maximum length in bytes of a logged string or error. Stack traces are
// shorter.
const logValueLimit = 8 << 10

// parseLogLevel parses the value of the log level flag. It returns the lowest slog level that is
// logged.
func parseLogLevel(s string) (slog.Level, error) {
	switch s {
	case logLevelError:
		return slog.LevelError, nil
	case logLevelInfo:
		return slog.LevelInfo, nil
	case logLevelDebug:
		return slog.LevelInfo - 1, nil
	case logLevelTrace:
		return slog.LevelInfo - 2, nil
	}
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil || n > logLevelMost {
		return 0, fmt.Errorf("must be one of %q, or a number from 0 to %d",
			[]string{logLevelError, logLevelInfo, logLevelDebug, logLevelTrace}, logLevelMost)
	}
	return slog.LevelInfo - slog.Level(n), nil
}

// newLogHandler returns a handler that writes to w at the options' level and in their format.
func newLogHandler(w io.Writer, opts *Options) (slog.Handler, error) {
	level, err := parseLogLevel(opts.LogLevel)
	if err != nil {
		return nil, err
	}
	handlerOptions := &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if l, ok := a.Value.Any().(slog.Level); ok && len(groups) == 0 && a.Key == slog.LevelKey {
				a.Value = slog.StringValue(logLevelName(l))
			}
			// An error from the API server may contain the complete rejected object.
			if err, ok := a.Value.Any().(error); ok && len(err.Error()) > logValueLimit {
				a.Value = slog.StringValue(err.Error())
			}
			if a.Value.Kind() == slog.KindString && len(a.Value.String()) > logValueLimit {
				a.Value = slog.StringValue(text.Shorten(a.Value.String(), logValueLimit))
			}
			return a
		},
	}
	if opts.LogFormat == logFormatText {
		return slog.NewTextHandler(w, handlerOptions), nil
	}
	return slog.NewJSONHandler(w, handlerOptions), nil
}

func logLevelName(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return logLevelError
	case level >= slog.LevelInfo:
		return logLevelInfo
	case level == slog.LevelInfo-1:
		return logLevelDebug
	default:
		return logLevelTrace
	}
}

// setLogger makes all components of this process log to w: controllers through the logger in their
// context, controller-runtime through its global logger, and client-go through klog.
func setLogger(w io.Writer, opts *Options) error {
	handler, err := newLogHandler(w, opts)
	if err != nil {
		return err
	}
	level, err := parseLogLevel(opts.LogLevel)
	if err != nil {
		return err
	}

	// klog checks its own verbosity flag before it calls the logger, so the flag must be set, too.
	klogFlags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(klogFlags)
	if err := klogFlags.Set("v", strconv.Itoa(max(0, -int(level)))); err != nil {
		return fmt.Errorf("set the verbosity of klog: %w", err)
	}

	logger := logr.FromSlogHandler(handler)
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	ctrl.SetLogger(logger)
	slog.SetDefault(slog.New(handler))
	return nil
}
