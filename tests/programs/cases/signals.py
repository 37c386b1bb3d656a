import os, signal, time

log = []
signal.signal(signal.SIGUSR1, lambda number, _: log.append(signal.Signals(number).name))
signal.signal(signal.SIGALRM, lambda number, _: log.append("alarm"))
os.kill(os.getpid(), signal.SIGUSR1)
signal.setitimer(signal.ITIMER_REAL, 0.05)
time.sleep(0.2)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
os.kill(os.getpid(), signal.SIGUSR2)
print(log, signal.sigpending(), signal.sigwait([signal.SIGUSR2]))
child = os.fork()
if child == 0:
    time.sleep(10)
os.kill(child, signal.SIGTERM)
print(os.waitpid(child, 0)[1])
child = os.fork()
if child == 0:
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(4)
print(os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1]))
os.kill(child, signal.SIGCONT)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os.kill(os.getpid(), signal.SIGINT if signal.getsignal(signal.SIGINT) == signal.SIG_IGN else signal.SIGTERM)
