// Prints, as JSON, the flags that a component of a Kubernetes release accepts.  Unlike --help it also tells those that
// are hidden, as deprecated ones are.  A process asks one component: they share feature gates, and may refuse to be two.
package main

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	// As the programs do: the JSON log format brings flags of its own.
	_ "k8s.io/component-base/logs/json/register"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app/options"
)

func main() {
	if err := json.NewEncoder(os.Stdout).Encode(flagsOf(os.Args[1])); err != nil {
		panic(err)
	}
}

func flagsOf(component string) []string {
	switch component {
	case "kube-apiserver":
		return command(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		return command(controllermanager.NewControllerManagerCommand())
	case "kube-scheduler":
		return command(scheduler.NewSchedulerCommand())
	case "kubelet":
		return names(kubeletFlags())
	}
	panic(component)
}

func command(cmd *cobra.Command) []string {
	cmd.InitDefaultHelpFlag()
	return names(cmd.Flags())
}

// kubeletFlags is the flag set that the kubelet's command keeps to itself.
func kubeletFlags() *pflag.FlagSet {
	config, err := kubelet.NewKubeletConfiguration()
	if err != nil {
		panic(err)
	}
	flags := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	kubelet.NewKubeletFlags().AddFlags(flags)
	kubelet.AddKubeletConfigFlags(flags, config)
	kubelet.AddGlobalFlags(flags)
	flags.BoolP("help", "h", false, "")
	return flags
}

// names are as the programs normalise them.
func names(flags *pflag.FlagSet) []string {
	var found []string
	flags.VisitAll(func(flag *pflag.Flag) { found = append(found, strings.ReplaceAll(flag.Name, "_", "-")) })
	return found
}
