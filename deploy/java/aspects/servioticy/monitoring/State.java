package servioticy.monitoring;

import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.CopyOption;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileAttribute;

/** What this JVM tells of its weaving: a small file, where the platform looks for them. */
final class State {

    /** Of the line that Linux tells of a process, behind its name: when it began. */
    private static final int BIRTH = 19;

    private final File file;
    private final long pid = ManagementFactory.getRuntimeMXBean().getPid();
    private final String program;
    private String told = "";

    State(String folder, String program) {
        this.file = folder.isEmpty() ? null : new File(folder, this.pid + ".json");
        this.program = program;
    }

    /** Writes it down, where it is another than before. */
    void tell(long published, long dropped) {
        if (this.file == null) {
            return;
        }
        try {
            String text = "{\"program\":" + Outbox.text(this.program) + ",\"pid\":" + this.pid
                + ",\"birth\":" + Outbox.text(birth()) + ",\"wrong\":" + Outbox.text(Told.wrong())
                + ",\"reports\":" + Told.reports() + ",\"published\":" + published
                + ",\"dropped\":" + dropped + "}";
            if (!text.equals(this.told)) {
                Path target = this.file.toPath();
                Path partial = target.resolveSibling("." + this.pid);
                Files.createDirectories(target.getParent(), new FileAttribute[0]);
                Files.write(partial, text.getBytes(StandardCharsets.UTF_8), new OpenOption[0]);
                CopyOption[] anew = new CopyOption[] {StandardCopyOption.REPLACE_EXISTING};
                Files.move(partial, target, anew);
                this.told = text;
            }
        } catch (IOException full) {
            this.told = "";
        }
    }

    void forget() {
        if (this.file != null) {
            this.file.delete();
        }
    }

    private String birth() throws IOException {
        byte[] line = Files.readAllBytes(new File("/proc/" + this.pid + "/stat").toPath());
        String text = new String(line, StandardCharsets.UTF_8);
        return text.substring(text.lastIndexOf(')') + 2).split(" ")[BIRTH];
    }
}
