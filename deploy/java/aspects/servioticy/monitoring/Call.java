package servioticy.monitoring;

import java.nio.charset.StandardCharsets;
import java.util.Random;
import java.util.zip.CRC32;

/** A call that is under way, and the one around it on the same thread. */
final class Call {

    private static final ThreadLocal NOW = new ThreadLocal();
    private static final Random RANDOM = new Random();

    final Call around;
    final String sequence;
    /** Empty where it is not measured. */
    final String id;
    final String place;
    final long at = Figures.now();
    final long began = System.nanoTime();
    final Figures figures;

    private Call(Call around, String sequence, String id, String place, Figures figures) {
        this.around = around;
        this.sequence = sequence;
        this.id = id;
        this.place = place;
        this.figures = figures;
    }

    /**
     * Begins one of the sequence that it is about, else of that which is under way here, else of
     * another one.
     */
    static Call begin(String about, String place, double sample, boolean profiles) {
        Call around = (Call) NOW.get();
        String sequence = about;
        if (about == null) {
            sequence = around == null ? hexadecimal() + hexadecimal() : around.sequence;
        }
        boolean measured = isSampled(sequence, sample);
        Figures figures = measured && profiles ? Figures.ofThread() : null;
        Call begun = new Call(around, sequence, measured ? hexadecimal() : "", place, figures);
        NOW.set(begun);
        return begun;
    }

    void end() {
        if (this.around == null) {
            NOW.remove();
        } else {
            NOW.set(this.around);
        }
    }

    String parent() {
        boolean inner = this.around != null && this.around.sequence.equals(this.sequence);
        return inner ? this.around.id : "";
    }

    /** As in Python: each step of a sequence says the same, wherever it runs. */
    private static boolean isSampled(String sequence, double rate) {
        CRC32 sum = new CRC32();
        sum.update(sequence.getBytes(StandardCharsets.UTF_8));
        return rate >= 1 || sum.getValue() < rate * 4294967296.0;
    }

    private static String hexadecimal() {
        String digits = Long.toHexString(RANDOM.nextLong() | 1L);
        return "0000000000000000".substring(digits.length()) + digits;
    }
}
